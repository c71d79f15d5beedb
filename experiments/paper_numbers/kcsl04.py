"""KCSL04: Tables 3.1, 3.2, 5.1, 5.2, 6.1, 6.2 and D.1."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Seeding:
    """A row of Table 3.1: iterations along C = 2^-8, 2^-7.5, ..., 2^8; ``last`` are those of C = 2^7.5 and 2^8."""

    seeded: int
    C_star: str
    norm: str
    unseeded: str
    last: tuple[str, str]


TABLE_31 = {
    "heart": Seeding(27_231, "2^3.5", "5.712", "2,449,067", ("507,122", "737,734")),
    "australian": Seeding(79_162, "2^2.5", "2.071", "20,353,966", ("3,981,265", "5,469,092")),
    "diabetes": Seeding(33_264, "2^6.5", "16.69", "1,217,926", ("274,155", "279,062")),
    "german": Seeding(277_932, "2^10", "3.783", "42,673,649", ("6,778,373", "14,641,135")),
    "web": Seeding(24_044_242, "unstable", "unstable", ">= 10^8", ("74,717,242", ">= 10^8")),
    "adult": Seeding(3_212_093, "unstable", "unstable", ">= 10^8", ("56,214,289", "84,111,627")),
    "ijcnn1": Seeding(590_645, "2^6", "108.6", "41,440,735", ("8,860,930", "13,927,522")),
}

# Table 3.2: iterations with the rbf kernel, seeded and not.
TABLE_32 = {
    "heart": (43_663, 56_792),
    "australian": (230_983, 323_288),
    "diabetes": (101_378, 190_047),
    "german": (191_509, 260_774),
    "web": (633_788, 883_319),
    "adult": (2_380_265, 4_110_663),
    "ijcnn1": (891_563, 1_968_396),
}


@dataclass(frozen=True)
class LinearMethods:
    """A row of Table 5.1: percent and seconds; of seeding up to C = 2^8 and 2^3, of none up to 2^3."""

    accuracy: float
    seeded: float
    seeded_to_3: float
    unseeded_to_3: float
    squared_accuracy: float
    asvm: float
    lsvm: float


TABLE_51 = {
    "australian": LinearMethods(85.51, 4.1, 3.6, 7.0, 88.70, 8.1, 2.3),
    "heart": LinearMethods(85.56, 1.4, 0.9, 1.0, 85.56, 5.8, 1.8),
    "diabetes": LinearMethods(79.69, 2.4, 2.3, 1.6, 81.64, 6.2, 2.0),
    "german": LinearMethods(73.65, 10.2, 6.2, 18.2, 73.95, 16.4, 9.0),
    "ijcnn1": LinearMethods(92.65, 981.9, 746.0, 3708.6, 92.51, 725.2, 17496.4),
    "adult": LinearMethods(85.02, 1065.9, 724.8, 12026.8, 84.90, 3130.7, 13445.4),
    "web": LinearMethods(98.67, 18035.3, 1738.2, 7035.6, 98.63, 10315.9, 43060.1),
}

# Table 5.2: iterations and seconds, seeded, for q = 2 and q = 30; SVMlight had numerical difficulties on web.
TABLE_52: dict[str, dict[int, tuple[int, float] | None]] = {
    "australian": {2: (50_145, 0.71), 30: (6_533, 1.19)},
    "heart": {2: (25_163, 0.21), 30: (1_317, 0.33)},
    "diabetes": {2: (30_265, 0.4), 30: (5_378, 0.31)},
    "german": {2: (182_051, 2.9), 30: (6_006, 3.68)},
    "ijcnn1": {2: (345_630, 185.85), 30: (79_847, 115.03)},
    "adult": {2: (1_666_607, 1455.2), 30: (414_798, 516.71)},
    "web": {2: None, 30: (2_673_578, 1885.1)},
}

# Table 6.1: percent and seconds by one (C, gamma), one for each pair, and Algorithm 1 (also with C~ up to 2^3).
TABLE_61: dict[str, dict[str, tuple[float, float | None]]] = {
    "dna": {"one": (95.62, 4945), "pairs": (95.11, 4945), "two-line": (94.86, 202), "two-line to 2^3": (94.77, None)},
    "satimage": {
        "one": (91.9, 7860),
        "pairs": (92.2, 7860),
        "two-line": (91.55, 1014),
        "two-line to 2^3": (90.55, None),
    },
    "letter": {
        "one": (97.9, 56753),
        "pairs": (97.72, 56753),
        "two-line": (96.54, 5365),
        "two-line to 2^3": (95.9, None),
    },
    "shuttle": {
        "one": (99.92, 104904),
        "pairs": (99.94, 104904),
        "two-line": (99.81, 4196),
        "two-line to 2^3": (99.7, None),
    },
}


@dataclass(frozen=True)
class Stability:
    """A row of Table 6.2: mean and standard deviation over ten searches."""

    log_c: tuple[float, float]
    log_gamma: tuple[float, float]
    grid_accuracy: tuple[float, float]
    linear_log_c: tuple[float, float] | None
    line_accuracy: tuple[float, float]


TABLE_62 = {
    "banana": Stability((7, 4.45), (-0.4, 1.51), (87.91, 0.47), (-1.9, 2.18), (76.36, 12.21)),
    "adult_small": Stability((5.4, 2.37), (-7.6, 1.71), (83.82, 0.27), (0.3, 4.08), (83.20, 1.28)),
    "dna": Stability((5.4, 3.34), (-5, 0), (95.56, 0.19), None, (94.85, 0.20)),
    "satimage": Stability((2.5, 0.71), (0.1, 0.57), (91.74, 0.24), None, (91.19, 0.28)),
}

# Table D.1: seconds with the tolerance C * 1e-3, seeded and not.
TABLE_D1 = {
    "australian": (2.30, 6.90),
    "heart": (0.36, 1.16),
    "diabetes": (0.75, 7.97),
    "german": (17.58, 46.24),
    "ijcnn1": (1052.07, 25779.50),
    "adult": (923.76, 40059.15),
    "web": (2311.79, 7547.94),
}

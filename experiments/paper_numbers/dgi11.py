"""DGI11: Tables 2 and 3. Table 1 is ``multimargin.datasets.DGI11_PARAMETERS``."""

from __future__ import annotations

# Table 2: test accuracy, medians of ten splits.
TABLE_2: dict[str, dict[str, float]] = {
    "abalone": {"ww": 0.2605, "llw": 0.2682, "cs": 0.2165, "ova": 0.2672},
    "car": {"ww": 0.9807, "llw": 0.9846, "cs": 0.9807, "ova": 0.9807},
    "glass": {"ww": 0.7231, "llw": 0.7231, "cs": 0.7077, "ova": 0.6923},
    "iris": {"ww": 0.9556, "llw": 0.9556, "cs": 0.9556, "ova": 0.9333},
    "optdigits": {"ww": 0.9761, "llw": 0.9789, "cs": 0.9750, "ova": 0.9761},
    "page-blocks": {"ww": 0.9342, "llw": 0.9330, "cs": 0.9294, "ova": 0.9312},
    "satimage": {"ww": 0.9235, "llw": 0.9230, "cs": 0.9240, "ova": 0.9135},
    "segment": {"ww": 0.9639, "llw": 0.9683, "cs": 0.9495, "ova": 0.9625},
    "soybean": {"ww": 0.9032, "llw": 0.9247, "cs": 0.9247, "ova": 0.9247},
    "vehicle": {"ww": 0.8425, "llw": 0.8425, "cs": 0.8150, "ova": 0.8346},
}

# Table 3: iterations and seconds; of cs, whose SMO and S2DO are one, under "s2do".
TABLE_3: dict[str, dict[tuple[str, str], tuple[float, float]]] = {
    "abalone": {
        ("llw", "smo"): (122_853, 671),
        ("llw", "s2do"): (52_501, 493),
        ("ww", "smo"): (92_705, 361),
        ("ww", "s2do"): (40_514, 319),
        ("cs", "s2do"): (118_368, 44),
    },
    "car": {
        ("llw", "smo"): (130_199, 9.86),
        ("llw", "s2do"): (31_360, 6.37),
        ("ww", "smo"): (15_309, 0.85),
        ("ww", "s2do"): (2_973, 0.73),
        ("cs", "s2do"): (17_408, 2.21),
    },
    "glass": {
        ("llw", "smo"): (38_030, 1.08),
        ("llw", "s2do"): (5_475, 0.48),
        ("ww", "smo"): (742, 0.048),
        ("ww", "s2do"): (372, 0.037),
        ("cs", "s2do"): (2_473, 0.19),
    },
    "iris": {
        ("llw", "smo"): (21_145, 0.065),
        ("llw", "s2do"): (1_697, 0.049),
        ("ww", "smo"): (146_387, 0.153),
        ("ww", "s2do"): (554, 0.022),
        ("cs", "s2do"): (21_362, 0.107),
    },
    "optdigits": {
        ("llw", "smo"): (529_247, 532),
        ("llw", "s2do"): (195_362, 520),
        ("ww", "smo"): (24_102, 59),
        ("ww", "s2do"): (10_419, 77),
        ("cs", "s2do"): (16_264, 46),
    },
    "page-blocks": {
        ("llw", "smo"): (693e6, 34_078),
        ("llw", "s2do"): (381e6, 25_259),
        ("ww", "smo"): (1_037_684, 30),
        ("ww", "s2do"): (93_251, 11),
        ("cs", "s2do"): (16e6, 4_438),
    },
    "satimage": {
        ("llw", "smo"): (219_895, 191),
        ("llw", "s2do"): (95_643, 276),
        ("ww", "smo"): (59_495, 105),
        ("ww", "s2do"): (22_001, 96),
        ("cs", "s2do"): (29_753, 109),
    },
    "segment": {
        ("llw", "smo"): (55e6, 6_507),
        ("llw", "s2do"): (19e6, 5_161),
        ("ww", "smo"): (206_149, 9.4),
        ("ww", "s2do"): (17_782, 4.7),
        ("cs", "s2do"): (13e6, 448),
    },
    "soybean": {
        ("llw", "smo"): (728_480, 66.3),
        ("llw", "s2do"): (214_096, 51.8),
        ("ww", "smo"): (7_073, 0.56),
        ("ww", "s2do"): (1_627, 0.49),
        ("cs", "s2do"): (9_657, 1.71),
    },
    "vehicle": {
        ("llw", "smo"): (17e8, 566),
        ("llw", "s2do"): (1_743_176, 163),
        ("ww", "smo"): (1_391_588, 18.1),
        ("ww", "s2do"): (203_840, 6.3),
        ("cs", "s2do"): (1_637_912, 26.4),
    },
}

# Table 3, last column: seconds of ova.
TABLE_3_OVA_SECONDS = {
    "abalone": 60,
    "car": 0.19,
    "glass": 0.18,
    "iris": 0.035,
    "optdigits": 6.4,
    "page-blocks": 252,
    "satimage": 15,
    "segment": 1.0,
    "soybean": 0.02,
    "vehicle": 0.9,
}

# Probably a misprint: 17*10^8 iterations in 566 s would be 30 times as fast as every other cell; 17*10^6 is meant.
TABLE_3_CORRECTED = {("vehicle", "llw", "smo"): 17e6}

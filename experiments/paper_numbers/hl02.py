"""HL02: Tables V.1 to V.4 and VI.5. The (C, gamma) of Table V.2 are ``multimargin.datasets.HL02_PARAMETERS``."""

from __future__ import annotations

# Table V.1: training rows, test rows, classes, attributes, and the best rate of Statlog.
TABLE_1: dict[str, tuple[int, int, int, int, float | None]] = {
    "iris": (150, 0, 3, 4, None),
    "wine": (178, 0, 3, 13, None),
    "glass": (214, 0, 6, 13, None),
    "vowel": (528, 0, 11, 10, None),
    "vehicle": (846, 0, 4, 18, None),
    "segment": (2310, 0, 7, 19, None),
    "dna": (2000, 1186, 3, 180, 95.9),
    "satimage": (4435, 2000, 6, 36, 90.6),
    "letter": (15000, 5000, 26, 16, 93.6),
    "shuttle": (43500, 14500, 7, 9, 99.99),
}

_METHODS = ("ovo", "dag", "ova", "ww", "cs")


def _by_method(*values: float) -> dict[str, float]:
    return dict(zip(_METHODS, values, strict=True))


# Table V.2: rates in percent with the rbf kernel.
TABLE_2 = {
    "iris": _by_method(97.333, 96.667, 96.667, 97.333, 97.333),
    "wine": _by_method(99.438, 98.876, 98.876, 98.876, 98.876),
    "glass": _by_method(71.495, 73.832, 71.963, 71.028, 71.963),
    "vowel": _by_method(99.053, 98.674, 98.485, 98.485, 98.674),
    "vehicle": _by_method(86.643, 86.052, 87.470, 86.998, 86.761),
    "segment": _by_method(97.403, 97.359, 97.532, 97.576, 97.316),
    "dna": _by_method(95.447, 95.447, 95.784, 95.616, 95.869),
    "satimage": _by_method(91.3, 91.25, 91.7, 91.25, 92.35),
    "letter": _by_method(97.98, 97.98, 97.88, 97.76, 97.68),
    "shuttle": _by_method(99.924, 99.924, 99.910, 99.910, 99.938),
}

# Table V.3: seconds of training, seconds of testing (the four sets that have a test part), unique support vectors.
TRAINING_SECONDS = {
    "iris": _by_method(0.04, 0.04, 0.10, 0.15, 16.84),
    "wine": _by_method(0.12, 0.13, 0.20, 0.28, 0.39),
    "glass": _by_method(2.42, 2.85, 10.00, 7.94, 7.60),
    "vowel": _by_method(2.63, 3.98, 9.28, 14.05, 20.54),
    "vehicle": _by_method(19.73, 35.18, 142.50, 88.61, 1141.76),
    "segment": _by_method(17.10, 23.25, 68.85, 66.43, 192.47),
    "dna": _by_method(10.60, 10.74, 23.47, 13.5, 16.27),
    "satimage": _by_method(24.85, 25.1, 136.42, 48.21, 89.58),
    "letter": _by_method(298.08, 298.62, 1831.80, 8786.20, 1227.12),
    "shuttle": _by_method(170.45, 168.87, 202.96, 237.80, 2205.78),
}
TESTING_SECONDS = {
    "dna": _by_method(6.91, 6.30, 8.43, 6.91, 6.39),
    "satimage": _by_method(13.23, 12.67, 19.22, 11.89, 23.61),
    "letter": _by_method(126.10, 92.8, 146.43, 142.75, 110.39),
    "shuttle": _by_method(6.99, 5.09, 5.99, 4.64, 4.26),
}
SUPPORT_VECTORS = {
    "iris": _by_method(16.9, 15.6, 16.0, 16.2, 27.8),
    "wine": _by_method(56.3, 56.5, 29.2, 54.5, 41.6),
    "glass": _by_method(112.5, 114.2, 129.0, 124.1, 143.3),
    "vowel": _by_method(345.3, 365.1, 392.6, 279.4, 391.0),
    "vehicle": _by_method(302.4, 293.1, 343.0, 264.2, 264.9),
    "segment": _by_method(442.4, 266.8, 446.3, 358.2, 970.3),
    "dna": _by_method(967, 967, 1152, 951, 945),
    "satimage": _by_method(1611, 1611, 2170, 1426, 2670),
    "letter": _by_method(8931, 8931, 10129, 7627, 6374),
    "shuttle": _by_method(301, 301, 330, 202, 198),
}

# Table V.4: log2 C and rates in percent with the linear kernel.
TABLE_4_C = {
    "iris": _by_method(4, 8, 12, 5, 0),
    "wine": _by_method(-2, -2, 2, -1, -1),
    "glass": _by_method(8, 4, 5, 9, 6),
    "vowel": _by_method(5, 6, 11, 8, 6),
    "vehicle": _by_method(5, 5, 12, 10, 4),
    "segment": _by_method(12, 11, 12, 8, -2),
}
TABLE_4 = {
    "iris": _by_method(97.333, 97.333, 96.000, 97.333, 87.333),
    "wine": _by_method(99.438, 98.315, 98.876, 98.876, 99.438),
    "glass": _by_method(66.355, 63.551, 58.879, 65.421, 62.617),
    "vowel": _by_method(82.954, 81.439, 50.000, 67.424, 63.068),
    "vehicle": _by_method(80.615, 80.851, 78.132, 80.142, 79.669),
    "segment": _by_method(96.017, 95.844, 93.160, 95.454, 92.165),
}

# Table VI.5: iterations of (17), cs without a bias, and of (24), with a regularised one.
TABLE_5 = {
    "dna": {"none": 8653, "regularized": 15475},
    "satimage": {"none": 13109, "regularized": 27751},
    "letter": {"none": 16341, "regularized": 26424},
    "shuttle": {"none": 163394, "regularized": 286734},
}

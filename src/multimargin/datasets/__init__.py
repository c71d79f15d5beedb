"""Data sets by name, generated ones, and the papers' sets with the protocol of all benchmarks and experiments.

``load`` finds a local copy (MULTIMARGIN_DATA), a set that scikit-learn ships, or one of OpenML's, which is downloaded
once.

The papers' files are not part of the package: they are found through the environment variable MULTIMARGIN_DATA or in a
directory ``shared/data`` beside the project. ``load_benchmark`` follows the protocol: attributes are scaled to [-1, 1]
on the training part and the test part follows the same map; (C, gamma) are those of HL02 Table V.2 for the machine
itself, else of DGI11 Table 1.
"""

from multimargin.datasets.benchmarks import (
    DGI11_PARAMETERS,
    HL02_PARAMETERS,
    UNSCALED,
    Benchmark,
    data_directory,
    load_benchmark,
    parameters,
)
from multimargin.datasets.generators import banana, chessboard, overlapping, rings
from multimargin.datasets.named import Dataset, load

__all__ = [
    "DGI11_PARAMETERS",
    "HL02_PARAMETERS",
    "UNSCALED",
    "Benchmark",
    "Dataset",
    "banana",
    "chessboard",
    "data_directory",
    "load",
    "load_benchmark",
    "overlapping",
    "parameters",
    "rings",
]

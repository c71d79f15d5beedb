"""Numbers printed in IGEL, "Online SVMs results II"."""

from __future__ import annotations

from typing import NamedTuple


class Online(NamedTuple):
    """One pass, or the batch optimum (LIBSVM)."""

    n_support: int
    accuracy: float
    primal: int
    dual: int


ONLINE = {
    ("usps", "first-order"): Online(3870, 0.9909, 17_214, 14_207),
    ("usps", "second-order"): Online(2501, 0.9936, 15_867, 14_454),
    ("usps", "batch"): Online(2747, 0.9951, 14_635, 14_633),
    ("chessboard", "first-order"): Online(3395, 0.9786, 782_969, 60_771),
    ("chessboard", "second-order"): Online(944, 0.9891, 143_614, 83_686),
    ("chessboard", "batch"): Online(873, 0.9940, 90_959, 90_946),
}

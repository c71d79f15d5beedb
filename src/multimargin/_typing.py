"""Types of arrays that the whole package names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
DataArray = NDArray[np.float32] | NDArray[np.float64]
# A C-contiguous array, or scipy's compressed sparse rows (csr_array, csr_matrix), which have no types.
DataMatrix = Any

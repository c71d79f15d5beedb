"""The stored hashes: those cases whose bits do not depend on the machine, for the scalar instruction set.

Besides our own vector code, which ``MULTIMARGIN_SIMD=scalar`` turns off, bits depend on what a fit calls: libm's exp,
tanh and pow (glibc has variants with and without fused multiply-adds), NumPy's own loops, and BLAS and LAPACK, whose
kernels sum in another order on each processor. So these are not stored: kernels of exp and tanh; machines by weights,
certificates and scores, where Python multiplies matrices; searches and calibrations, where scikit-learn and SciPy may
change what they call. What is left is trained by the core alone. That no other part shows is tried out all the same:
the cases run with these libraries as on processors of several ages, and only hashes that agree are stored.

The compiler fuses multiply-adds where the processor that is built for has them (aarch64, or x86-64 with -march), and
C++ libraries sort equal keys in their own order: the stored hashes are those of x86-64 with libstdc++, as on Linux.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STORED = Path(__file__).with_name("hashes.json")
NOT_STORED = ("search/", "svc/calibration/", "use/", "linear/", "path/linear/")
KERNELS_OF_LIBM = ("rbf", "sigmoid", "laplacian")

# Settings that each make the same calls take other code: BLAS, NumPy and libm as on processors of several ages.
_NO_VECTORS = "-AVX,-AVX2,-FMA,-FMA4,-AVX512F,-AVX_Usable,-AVX2_Usable,-FMA_Usable"
# Names of NumPy 2.4 and of earlier versions; one does not know those of the other.
_FEATURES = "X86_V3 X86_V4 AVX512_ICL AVX512_SPR AVX F16C FMA3 AVX2 AVX512F AVX512CD AVX512_SKX"
PROCESSORS: tuple[dict[str, str], ...] = (
    {},
    {"OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "2"},
    {"OPENBLAS_CORETYPE": "Nehalem", "OMP_NUM_THREADS": "1"},
    {
        "OPENBLAS_CORETYPE": "Prescott",
        "NPY_DISABLE_CPU_FEATURES": _FEATURES,
        "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={_NO_VECTORS}",
    },
)


def applies() -> bool:
    """Return whether this machine computes what the stored file holds."""
    return platform.machine() in ("x86_64", "AMD64") and platform.system() == "Linux"


def scalar_hashes(settings: dict[str, str]) -> dict[str, str]:
    """Return the hashes of the scalar instruction set from a process of its own, with some settings of libraries."""
    environment = os.environ | settings | {"MULTIMARGIN_SIMD": "scalar"}
    command = [sys.executable, "-m", "benchmarks.golden", "--write", "-", "--portable"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    hashes: dict[str, str] = json.loads(done.stdout)
    return hashes


def portable_hashes() -> dict[str, str]:
    """Return the hashes of models that agree for all settings."""
    first, *others = [scalar_hashes(settings) for settings in PROCESSORS]
    return {name: model_of(value) for name, value in first.items() if not differing({name: value}, *others)}


def differing(stored: dict[str, str], *found: dict[str, str]) -> list[str]:
    """Return the names of stored cases whose models are not everywhere as they are stored."""
    return [
        name for name, value in stored.items() if any(model_of(each.get(name, "")) != model_of(value) for each in found)
    ]


def model_of(value: str) -> str:
    """Return the first of the two hashes."""
    return value.partition(" ")[0]


def may_be_stored(name: str) -> bool:
    """Return whether nothing speaks against a case but, perhaps, what the settings show."""
    return not name.startswith(NOT_STORED) and not any(kernel in name.split("/") for kernel in KERNELS_OF_LIBM)


def render(hashes: dict[str, str]) -> str:
    """Return JSON with one line for each case."""
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in hashes.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"

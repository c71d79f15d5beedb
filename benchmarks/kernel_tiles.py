"""Nanoseconds per kernel value: our tiles against numpy's product and exponential.

    python -m benchmarks.kernel_tiles [--rows 2048]

One thread each; both store the block, ours with one more copy out of its padding. numpy computes the same rbf block as
exp(-gamma (|x|^2 + |z|^2 - 2 x'z)) in place, with its BLAS.
"""

from __future__ import annotations

import click
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import seconds_of
from multimargin.kernels import KernelSpec, KernelStore


def by_numpy(X: np.ndarray, gamma: float) -> np.ndarray:
    norms = (X * X).sum(axis=1)
    block = X @ X.T
    block *= 2
    block -= norms[:, None]
    block -= norms[None, :]
    block *= X.dtype.type(gamma)
    np.exp(block, out=block)
    return block


def nanoseconds(width: int, dtype: type, rows: int) -> tuple[float, float]:
    """Return the time per value of our tiles and of numpy."""
    X = np.random.default_rng(0).uniform(-1, 1, (rows, width)).astype(dtype)
    store = KernelStore(X, KernelSpec("rbf", gamma=1.0 / width))
    everything = np.arange(rows)
    ours = seconds_of(lambda: store.block(everything, everything, float32=dtype is np.float32))
    theirs = seconds_of(lambda: by_numpy(X, 1.0 / width))
    return ours / rows**2 * 1e9, theirs / rows**2 * 1e9


@click.command()
@click.option("--rows", default=2048)
def main(rows: int) -> None:
    """Print one line per width and precision."""
    print("| features | precision | tiles ns | numpy ns | tiles / numpy |\n|---|---|---|---|---|")
    with threadpool_limits(1):
        for width in (2, 9, 16, 36, 64, 123, 180, 784):
            for dtype in (np.float32, np.float64):
                ours, theirs = nanoseconds(width, dtype, rows)
                print(f"| {width} | {np.dtype(dtype).name} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |")


if __name__ == "__main__":
    main()

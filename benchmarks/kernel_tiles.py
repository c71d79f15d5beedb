"""Nanoseconds per kernel value: our tiles against numpy's product and exponential.

    python -m benchmarks.kernel_tiles [--rows 256] [--columns 1024]

One thread each, blocks that stay in the cache; both store the block, ours packs its columns first and copies it out of
its padding afterwards. numpy computes the same rbf block as exp(-gamma (|x|^2 + |z|^2 - 2 x'z)) in place with BLAS.
The second table sets sparse tiles beside dense ones on the same data with few nonzeros.
"""

from __future__ import annotations

import click
import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.measure import seconds_of
from multimargin import _core
from multimargin.base.matrices import to_core
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore


def by_numpy(X: np.ndarray, Z: np.ndarray, gamma: float) -> np.ndarray:
    block = X @ Z.T
    block *= 2
    block -= (X * X).sum(axis=1)[:, None]
    block -= (Z * Z).sum(axis=1)[None, :]
    block *= X.dtype.type(gamma)
    np.exp(block, out=block)
    return block


def nanoseconds(width: int, dtype: type, rows: int, columns: int) -> tuple[float, float]:
    """Return the time per value of our tiles and of numpy."""
    X = np.random.default_rng(0).uniform(-1, 1, (rows + columns, width)).astype(dtype)
    store = KernelStore(X, KernelSpec("rbf", gamma=1.0 / width))
    first, second = np.arange(rows), np.arange(rows, rows + columns)
    ours = seconds_of(lambda: store.block(first, second, float32=dtype is np.float32))
    theirs = seconds_of(lambda: by_numpy(X[:rows], X[rows:], 1.0 / width))
    return ours / (rows * columns) * 1e9, theirs / (rows * columns) * 1e9


def sparse_nanoseconds(width: int, nonzeros: int, rows: int, columns: int) -> tuple[float, float]:
    """Return the time per value of sparse and of dense tiles, in float32."""
    rng = np.random.default_rng(0)
    ranks = rng.uniform(size=(rows + columns, width)).argsort(axis=1)
    X = (ranks < nonzeros).astype(np.float32)
    kernel = KernelSpec("rbf", gamma=1.0 / width).to_core()
    first, second = np.arange(rows), np.arange(rows, rows + columns)
    stores = [_core.Store(to_core(data), kernel) for data in (sparse.csr_array(X), X)]
    by_sparse, by_dense = (seconds_of(lambda store=store: store.block_f32(first, second)) for store in stores)
    return by_sparse / (rows * columns) * 1e9, by_dense / (rows * columns) * 1e9


@click.command()
@click.option("--rows", default=256)
@click.option("--columns", default=1024)
def main(rows: int, columns: int) -> None:
    """Print one line per width and precision."""
    print("| features | precision | tiles ns | numpy ns | tiles / numpy |\n|---|---|---|---|---|")
    with threadpool_limits(1):
        for width in (2, 9, 16, 36, 64, 123, 180, 784):
            for dtype in (np.float32, np.float64):
                ours, theirs = nanoseconds(width, dtype, rows, columns)
                print(f"| {width} | {np.dtype(dtype).name} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |")
        print("\n| features | nonzeros | sparse ns | dense ns | sparse / dense |\n|---|---|---|---|---|")
        for width, nonzeros in ((36, 9), (64, 16), (123, 14), (123, 30), (180, 46), (300, 12), (784, 150)):
            ours, theirs = sparse_nanoseconds(width, nonzeros, rows, columns)
            print(f"| {width} | {nonzeros} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |")


if __name__ == "__main__":
    main()

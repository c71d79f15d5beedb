"""Every entry of the table of kernels, and the page that says how to add one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from scipy import sparse

from multimargin import SVC, _core
from multimargin._typing import DataMatrix, FloatArray
from multimargin.kernels.rounding import kernel_sizes
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore
from multimargin.kernels.table import KERNELS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "developer" / "add_a_kernel.md").read_text(encoding="utf-8")
SIMD = ROOT / "cpp" / "core" / "simd"
each_kernel = pytest.mark.parametrize("name", KERNELS)

X = np.random.default_rng(0).normal(size=(70, 5))
DISTANCES = np.linspace(0.0, 30.0, 2_001)


def specs(name: str) -> list[KernelSpec]:
    return [KernelSpec(name, gamma=gamma, coef0=coef0, degree=3) for gamma in (0.05, 0.3) for coef0 in (0.5, -0.5)]


@each_kernel
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_values_of_the_core_are_those_of_the_table(name: str, convert: Callable[[FloatArray], DataMatrix]) -> None:
    every = np.arange(len(X))
    for kernel in specs(name):
        store, expected = KernelStore(convert(X), kernel), kernel.gram(X, X)
        size = np.abs(expected).max()
        assert np.allclose(store.block(every, every), expected, rtol=1e-12, atol=1e-12 * size)
        assert np.allclose(store.block(every, every, float32=True), expected, rtol=1e-5, atol=1e-6 * size)
        assert np.allclose(store.diagonal(), np.diag(expected), rtol=1e-12)


@each_kernel
def test_bounds_hold(name: str) -> None:
    """The largest value, the sizes behind bounds on rounding, and a slope that float32 carries."""
    for kernel in specs(name):
        values = np.abs(kernel.gram(X, X))
        sizes = kernel_sizes(kernel, X)
        assert (values <= np.outer(sizes, sizes) * (1 + 1e-12)).all()
        assert values.max() <= kernel.largest_value(float((X**2).sum(axis=1).max())) * (1 + 1e-12)
        if kernel.shift_invariant:
            by_distance = kernel.of_form(DISTANCES)
            assert (np.diff(by_distance) <= 0).all()
            assert by_distance[0] <= 1.0
            slope = -np.diff(by_distance) / (np.diff(DISTANCES) * abs(kernel.scale))
            assert slope.max() <= 1.0 + 1e-9


@each_kernel
def test_what_is_said_of_definiteness_holds(name: str) -> None:
    for kernel in specs(name):
        smallest = np.linalg.eigvalsh(kernel.gram(X, X)).min()
        assert smallest > -1e-9 or not kernel.positive_semidefinite
    assert any(kernel.positive_semidefinite for kernel in specs(name)) == (name != "sigmoid")


@each_kernel
def test_parameters_are_those_that_matter(name: str) -> None:
    plain = KernelSpec(name, gamma=0.3, coef0=0.5, degree=3)
    values = plain.gram(X, X)
    for parameter, other in (("degree", 2), ("gamma", 0.4), ("coef0", 0.7)):
        changed = KernelSpec(name, **{"gamma": 0.3, "coef0": 0.5, "degree": 3, parameter: other})  # type: ignore[arg-type]
        assert (parameter in KERNELS[name].parameters) == (not np.array_equal(changed.gram(X, X), values))


@each_kernel
def test_values_into_memory_that_is_there(name: str) -> None:
    kernel, sums = KernelSpec(name, gamma=0.3, coef0=0.5), np.abs(X)
    out = np.empty_like(sums)
    assert kernel.of_form(sums, out) is out
    assert np.array_equal(out, kernel.of_form(sums))


@each_kernel
def test_the_page_of_kernels_has_it(name: str) -> None:
    page = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf'^\| `"{name}"`[^|]*\| \$(.*?)\$ \| (.*?) ?\| (.*?) \|$', page, re.MULTILINE)
    entry = KERNELS[name]
    assert row[0] == entry.formula
    assert set(re.findall(r"`(\w+)`", row[1])) == set(entry.parameters)
    always = {KernelSpec(name, coef0=coef0).positive_semidefinite for coef0 in (-1.0, 1.0)}
    assert row[2] == ("if `coef0 >= 0`" if len(always) == 2 else "yes" if True in always else "no")


@each_kernel
def test_svc_tells_of_it(name: str) -> None:
    assert f'"{name}"' in str(SVC.__doc__)


def test_the_core_has_the_forms_and_transforms() -> None:
    assert {entry.form for entry in KERNELS.values()} == set(_core.forms())
    assert {entry.transform for entry in KERNELS.values()} <= set(_core.transforms())
    with pytest.raises(ValueError, match="no form or transform of that name"):
        _core.Kernel("dot", "none")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_makes_a_kernel() -> None:
    """Its code runs as it is, and what it makes is a kernel as good as any."""
    with mock.patch.dict(KERNELS):
        exec("\n".join(blocks("python")), {})
        for check in (test_bounds_hold, test_what_is_said_of_definiteness_holds, test_parameters_are_those_that_matter):
            for name in ("exponential", "cauchy"):
                check(name)
        for convert in (np.asarray, sparse.csr_array):
            test_values_of_the_core_are_those_of_the_table("exponential", convert)


PROGRAM = """
#include <cstdio>
#include "table.hpp"
using namespace multimargin::simd;
template <class T>
void show(void (*tile)(const Tile<T>&, const Evaluation&)) {
    T rows[2] = {T(0.5), T(-1.25)}, panel[panel_width], out[2 * panel_width];
    for (int j = 0; j < panel_width; ++j) panel[j] = T(j) / 4;
    tile({rows, 2, 1, panel, out, panel_width}, {Form::squared_difference, Transform::reciprocal, 0.7, 1.0, 0.0, 0});
    for (const T value : out) std::printf("%.17g ", double(value));
    std::printf("\\n");
}
int main() {
    for (int i = 0; available_table(i) != nullptr; ++i) {
        show(available_table(i)->tile_f32);
        show(available_table(i)->tile_f64);
    }
}
"""


def test_the_page_makes_a_transform(tmp_path: Path) -> None:
    """Its line of C++ compiles, as scalar and as vector code, and both give the values of the entry."""
    (diff,) = blocks("diff")
    lines = diff.splitlines()
    before, after = ("\n".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
    copy = tmp_path / "simd"
    shutil.copytree(SIMD, copy)
    header = copy / "transforms.hpp"
    text = header.read_text(encoding="utf-8")
    assert text.count(before) == 1, "the diff does not fit the file"
    header.write_text(text.replace(before, after), encoding="utf-8")
    (copy / "program.cpp").write_text(PROGRAM, encoding="utf-8")
    names = ("program", "dispatch", "scalar", "scalar_streams", "vector")
    numbers = {"TARGET": "baseline", "BYTES": 16, "ROWS": 4, "STRIP": 2}
    flags = [f"-DMULTIMARGIN_SIMD_{key}={value}" for key, value in numbers.items()]
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O0", "-w", "-DMULTIMARGIN_HAVE_VECTORS", *flags]
    program = tmp_path / "program"
    subprocess.run([*command, *(f"{name}.cpp" for name in names), "-o", program], cwd=copy, check=True)
    shown = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    found = np.array([line.split() for line in shown], dtype=np.float64)
    points, columns = np.array([[0.5], [-1.25]]), np.arange(64.0) / 4
    expected = 1 / (1 + 0.7 * (points - columns) ** 2)
    assert len(found) == 4  # scalar and vector code in both precisions
    for values, tolerance in zip(found, (1e-6, 1e-14) * 2, strict=True):
        assert np.allclose(values.reshape(2, 64), expected, rtol=tolerance, atol=0)

"""The experiment on solvers: every solver is included, the table agrees with the fits, the figure is written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris

from experiments import solver_curves
from experiments.solver_curves import STUDIES, Study, dual_of, fit_all, rows_of
from multimargin.datasets import Benchmark
from multimargin.solvers.options import SolverChoice

X, Y = load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def iris_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_curves, "load_benchmark", lambda name: Benchmark(name, X, Y, None, None))


def test_command_writes_picture_and_table(tmp_path: Path) -> None:
    arguments = ["--data", "vehicle", "--data", "segment", "--solver", "s2do", "--solver", "smo"]
    arguments += ["--out", str(tmp_path), "--picture", str(tmp_path / "curves.png")]
    run = CliRunner().invoke(solver_curves.main, arguments)
    assert run.exit_code == 0, run.output
    assert (tmp_path / "solver_curves.md").read_text().strip() in run.output
    rows = json.loads((tmp_path / "solver_curves.json").read_text())["rows"]
    assert [(row["data"], row["solver"]) for row in rows] == [
        *(("vehicle", "s2do"), ("vehicle", "smo")),
        *(("segment", "s2do"), ("segment", "smo")),
    ]
    assert all(row["kkt_violation"] <= 1e-3 for row in rows)
    picture = (tmp_path / "curves.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 100_000


def test_rows_measure_from_the_best_dual() -> None:
    study = Study("vehicle")
    fits = fit_all(study, study.solvers, 1e-3, 60.0)
    rows = rows_of(study, fits)
    duals = np.array([clf.certificate_.dual for clf in fits.values()])
    np.testing.assert_allclose([row["below"] for row in rows], 1 - duals / duals.max(), atol=1e-15)
    assert [row["n_iter"] for row in rows] == [clf.n_iter_[0] for clf in fits.values()]
    *_, last = solver_curves.render(rows)
    assert last.count("|") == solver_curves.HEADER.count("|")


@pytest.mark.parametrize("study", STUDIES, ids=str)
def test_studies_of_the_documentation(study: Study) -> None:
    """Solvers that refuse the machine are not among them, and those of a study agree on its optimum."""
    rows = rows_of(study, fit_all(study, study.solvers, 1e-3, 60.0))
    assert [row["solver"] for row in rows] == list(study.solvers)
    assert {row["stop_reason"] for row in rows} == {"converged"}
    assert max(row["below"] for row in rows) < 1e-3


def test_documentation_shows_every_solver() -> None:
    shown = {solver for study in STUDIES for solver in study.solvers}
    assert {"smo", "auto", "frank-wolfe", *(choice.value for choice in SolverChoice)} == shown


@pytest.mark.parametrize("machine", ["cs", "atm", "llw"])
def test_working_sets_are_for_boxes(machine: str) -> None:
    assert ("working-set" in Study("vehicle", machine).solvers) == (machine == "llw")


def test_duals_of_pairs_are_added() -> None:
    clf = fit_all(Study("vehicle", "ovo"), ("auto",), 1e-3, 60.0)["auto"]
    assert dual_of(clf) == pytest.approx(sum(part.dual for part in clf.certificate_.parts))
    assert dual_of(clf) > clf.certificate_.dual


def test_panels_show_every_solver() -> None:
    fits = fit_all(Study("vehicle"), ("smo", "s2do"), 1e-3, 60.0)
    left, right = solver_curves.draw({Study("vehicle"): fits}).axes
    for ax in (left, right):
        assert [line.get_label() for line in ax.get_lines()] == ["smo", "s2do"]
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert right.get_legend() is not None


def test_digits_need_no_download() -> None:
    fits = fit_all(Study("digits"), ("two-level",), 1e-2, 60.0)
    assert fits["two-level"].certificate_.optimal

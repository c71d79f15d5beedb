"""The experiments print their numbers beside the papers', and resume where they were stopped."""

from __future__ import annotations

import csv
import importlib
import json
import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from experiments import data, dgi11_table2, dgi11_table3, hl02, hl02_selection, hl02_stopping, hl02_table2
from experiments.dgi11_table3 import Spent, is_fewer, remark
from experiments.frame import Cells, Experiment, Report, Settings, Task, command
from experiments.paper_numbers import dgi11, kcsl04
from experiments.paper_numbers import hl02 as printed_hl02
from experiments.tables import Entry, pivot, worst
from multimargin.datasets import DGI11_PARAMETERS, HL02_PARAMETERS
from multimargin.plotting.statistics import compare_ranks

ROOT = Path(__file__).parents[2]
# solver_curves and igel_online have command lines of their own.
NAMES = [
    *("dgi11_table1", "dgi11_table2", "dgi11_table3"),
    *("hl02_table1", "hl02_table2", "hl02_table3", "hl02_table4", "hl02_table5", "hl02_selection", "hl02_stopping"),
    *("kcsl04_table31", "kcsl04_table32", "kcsl04_table51", "kcsl04_table52", "kcsl04_table61", "kcsl04_table62"),
    *("kcsl04_table_d1", "kcsl04_figures", "wwdoc_gap", "igel_curves", "landscape"),
]

WITH_FIGURE = ("kcsl04_figures", "wwdoc_gap", "igel_curves", "landscape")


@pytest.mark.parametrize("name", NAMES)
def test_quick_run(name: str, tmp_path: Path) -> None:
    """Needs no data files; writes a table and its numbers; the same command again computes nothing."""
    module = importlib.import_module(f"experiments.{name}")
    arguments = ["--quick", "--out", str(tmp_path)]
    run = CliRunner().invoke(module.main, arguments)
    assert run.exit_code == 0, run.output
    assert module.EXPERIMENT.name == name
    text = (tmp_path / f"{name}.md").read_text()
    assert text.startswith(f"# {module.EXPERIMENT.title}\n")
    assert text.splitlines()[-1].startswith("At most 300 s a cell. 20")
    assert "multimargin 0." in text.splitlines()[-1]
    assert "| nan" not in text
    with (tmp_path / f"{name}.csv").open() as file:
        assert len(list(csv.DictReader(file))) > 0
    assert (tmp_path / f"{name}.png").exists() == (name in WITH_FIGURE)
    cells = (tmp_path / module.EXPERIMENT.store_name).read_text()
    again = CliRunner().invoke(module.main, arguments)
    assert again.exit_code == 0, again.output
    assert (tmp_path / module.EXPERIMENT.store_name).read_text() == cells
    assert (tmp_path / f"{name}.md").read_text().splitlines()[:-1] == text.splitlines()[:-1]


def test_every_experiment_is_here_and_documented() -> None:
    modules = {path.stem for path in (ROOT / "experiments").glob("*.py")}
    shared = {"__init__", "frame", "tables", "data", "hl02", "kcsl04", "solver_curves", "igel_online", "streams"}
    assert modules - shared == set(NAMES)
    text = (ROOT / "experiments" / "README.md").read_text()
    assert [name for name in NAMES if f"`{name}`" not in text] == []


def counting(made: list[str], sets: tuple[str, ...] = ("a", "b", "c")) -> Experiment:
    """An experiment that records the cells it computes."""

    def work(name: str) -> dict[str, Any]:
        made.append(name)
        if name == "stop":
            raise KeyboardInterrupt
        return {"n": len(name), "array": np.arange(2).tolist()}

    def plan(settings: Settings) -> list[Task]:
        return [Task((name,), partial(work, name)) for name in settings.sets]

    def report(cells: Cells, settings: Settings) -> Report:
        return Report(["done"], [{"name": key[0], **cell} for key, cell in cells.items()], holds=("bad",) not in cells)

    return Experiment("counting", "Counting", sets, ("q",), plan, report, more_sets=("stop", "bad"))


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    made: list[str] = []
    main = command(counting(made, ("a", "stop", "b")))
    assert CliRunner().invoke(main, ["--out", str(tmp_path)]).exit_code == 1
    assert made == ["a", "stop"]
    store = tmp_path / "counting.cells.jsonl"
    store.write_text(store.read_text() + '{"key": ["b"], "sett')  # as if it had been killed while writing
    assert CliRunner().invoke(main, ["--out", str(tmp_path), "--set", "a", "--set", "b"]).exit_code == 0
    assert made == ["a", "stop", "b"]
    assert CliRunner().invoke(main, ["--out", str(tmp_path), "--set", "a", "--set", "b"]).exit_code == 0
    assert made == ["a", "stop", "b"]
    assert CliRunner().invoke(main, ["--out", str(tmp_path), "--set", "a", "--limit", "7"]).exit_code == 0
    assert made[3:] == ["a"]  # another limit is another cell
    assert [json.loads(line)["settings"]["limit"] for line in store.read_text().splitlines() if "cell" in line] == [
        *(300.0, 300.0, 7.0)
    ]


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULTIMARGIN_DATA", "before")
    made: list[str] = []
    main = command(counting(made))
    assert CliRunner().invoke(main, ["--quick", "--data", str(tmp_path)]).exit_code == 0
    assert made == ["q"]
    assert os.environ["MULTIMARGIN_DATA"] == str(tmp_path)
    refused = CliRunner().invoke(main, ["--set", "x"])
    assert refused.exit_code == 2
    assert "'x' is not one of" in refused.output
    assert CliRunner().invoke(main, ["--data", str(tmp_path / "nowhere")]).exit_code == 2
    assert CliRunner().invoke(main, ["--variant", "other"]).exit_code == 2
    assert CliRunner().invoke(main, ["--set", "bad"]).exit_code == 1  # the asserted figures do not hold


def test_entries() -> None:
    assert Entry("r", "c", 91.25, 91.0).text() == "91.25 / 91.00 (+0.25)"
    assert Entry("r", "c", 1200, 1000, "count").text() == "1,200 / 1,000 (1.2x)"
    assert Entry("r", "c", 1200, None, "count", limited=True).text() == "> 1,200"
    # Below a limit the paper's number may still have been reached: no ratio is printed.
    assert Entry("r", "c", 500, 1000, "count", limited=True).text() == "> 500 / 1,000"
    assert Entry("r", "c", 2000, 1000, "count", limited=True).text() == "> 2,000 / 1,000 (2x)"
    assert Entry("r", "c", 5.0, "unstable", "number").text() == "5 / unstable"
    assert Entry("r", "c", None, 3.0).text() == "- / 3.00"
    assert Entry("r", "c", 3.0, 5.0, "log2").text() == "2^3 / 2^5 (-2)"
    table = pivot([Entry("a", "x", 1.0), Entry("b", "y", 2.0)])
    assert table == ["| data | x | y |", "| --- | --- | --- |", "| a | 1.00 | - |", "| b | - | 2.00 |"]
    most = worst([Entry("a", "x", 1.0, 0.5), Entry("b", "x", 1.0, 3.0), Entry("c", "x", None, 3.0)])
    assert most is not None
    assert most.row == "b"


def test_splits() -> None:
    assert [len(y) for _, y, _, _ in data.splits("iris", 2, quick=True)] == [105, 105]
    assert [len(y) for _, y, _, _ in data.splits("digits", 2, quick=True)] == [400]
    assert [len(y) for _, y, _, _ in data.splits("digits", 2, quick=True, own_test=False)] == [280, 280]
    one, two = (X for X, _, _, _ in data.splits("iris", 2, quick=True))
    assert not np.array_equal(one, two)
    assert data.frequent(np.array([1, 2, 2, 3, 3, 3]), 2).tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="set='letter' is none of scikit-learn's; with --quick choose one of iris"):
        data.load("letter", quick=True)


def test_variants_have_cells_and_files_of_their_own(tmp_path: Path) -> None:
    arguments = ["--quick", "--set", "iris", "--splits", "1", "--out", str(tmp_path)]
    for more in ([], ["--variant", "range"]):
        assert CliRunner().invoke(dgi11_table2.main, [*arguments, *more]).exit_code == 0
    lines = map(json.loads, (tmp_path / "dgi11_table2.cells.jsonl").read_text().splitlines())
    assert [entry["settings"]["variant"] for entry in lines] == ["variance"] * 5 + ["range"] * 5
    for name, variant in (("dgi11_table2", "variance"), ("dgi11_table2-range", "range")):
        assert f"\nVariant: {variant}.\n" in (tmp_path / f"{name}.md").read_text()


def test_scaling_is_that_of_the_variant() -> None:
    asked = [Settings(("iris",), quick=True, variant=variant) for variant in ("range", "variance")]
    scaled, standard = (next(dgi11_table2.parts("iris", settings)) for settings in asked)
    np.testing.assert_allclose(standard[0].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(standard[0].std(axis=0), 1)
    assert np.abs(scaled[0]).max() == pytest.approx(1)
    assert len(standard[2]) == 45


def test_s2do_verdict() -> None:
    many, few = Spent(900, 1.0, True), Spent(100, 1.0, True)
    assert is_fewer(many, few) is True
    assert is_fewer(few, many) is False
    assert is_fewer(few, few) is False
    stopped_many, stopped_few = Spent(900, 60.0, False), Spent(100, 60.0, False)
    assert is_fewer(stopped_many, few) is True
    assert is_fewer(stopped_few, many) is None
    assert is_fewer(stopped_many, stopped_few) is None
    assert is_fewer(few, stopped_many) is False


def test_remarks() -> None:
    def said(iterations: float, *, done: bool = True, name: str = "iris") -> str:
        return remark(Spent(iterations, 1.0, done), dgi11_table3.printed(name, "llw", "smo"))

    assert said(9_000) == "same order"
    assert said(1_000).startswith("0.047 times the paper's: the paper's splits")
    assert said(1_000, done=False) == "ended by the limit before the paper's number"
    assert said(9e6, done=False).startswith("4.3e+02 times")
    assert said(9e6, name="vehicle") == "same order"  # as 17*10^6, which is meant
    assert said(5, name="letter") == "not in the paper"


def test_s2do_behind_is_an_error(tmp_path: Path) -> None:
    cell: dict[str, Any] = {"iterations": [900], "seconds": [1.0], "done": True, "n_rows": 105}
    keys = [(machine, solver) for machine, solvers in dgi11_table3.SOLVERS.items() for solver in (*solvers, "auto")]
    cells: Cells = {("iris", machine, solver): dict(cell) for machine, solver in keys}
    cells["iris", "ww", "s2do"]["iterations"] = cells["iris", "llw", "s2do"]["iterations"] = [100]
    settings = Settings(("iris",), splits=1)
    assert dgi11_table3.report(cells, settings).holds
    cells["iris", "llw", "s2do"]["iterations"] = [901]
    found = dgi11_table3.report(cells, settings)
    assert not found.holds
    assert "- iris llw: NO" in found.lines
    cells["iris", "llw", "s2do"]["done"] = cells["iris", "llw", "smo"]["done"] = False
    assert dgi11_table3.report(cells, settings).holds


def test_a_limit_is_printed_as_such() -> None:
    run = CliRunner().invoke(dgi11_table3.main, ["--quick", "--limit", "1e-9"])
    assert run.exit_code == 0, run.output
    iterations = next(line for line in run.output.splitlines() if line.startswith("| iris |"))
    assert iterations.count("> ") == 5
    assert "- iris ww: open: limit" in run.output


def test_rates_must_be_near() -> None:
    near = [Entry("dna", "x", 95.5, 95.447), Entry("iris", "x", 95.5, 97.333)]
    assert hl02_table2.verdict(near)[0]
    far, lines = hl02_table2.verdict([Entry("dna", "x", 95.0, 95.447), Entry("iris", "x", 95.2, 97.333)])
    assert not far
    assert len([line for line in lines if line.startswith("  - beyond")]) == 2
    assert "0 of 1 rates within 0.3 points" in lines[0]


def test_bias_and_tolerance_of_each_column() -> None:
    """HL02: exact for the methods made of binary machines, regularised for ww, none for C&S."""
    assert hl02.BIAS == {"ovo": "exact", "dag": "exact", "ova": "exact", "ww": "regularized", "cs": "none"}
    loose = {
        (name, method) for name in printed_hl02.TABLE_1 for method in hl02.BIAS if hl02.tolerance(name, method) > 1e-3
    }
    assert loose == {("letter", "cs"), ("shuttle", "cs")}
    keys = [task.key for task in hl02.rbf_tasks(Settings(("satimage", "letter")))]
    assert ("letter", "cs", "0.001") in keys
    assert len(keys) == 11


def test_ties_go_to_the_highest_rate_then_to_the_fewest_support_vectors() -> None:
    tried = [
        {"rate": 95.0, "support_vectors": 10},
        {"rate": 96.0, "support_vectors": 30},
        {"rate": 96.0, "support_vectors": 20},
    ]
    assert hl02_selection.break_ties(tried) is tried[2]

    search: Any = SimpleNamespace(Cs_=np.array([1.0, 2.0]), gammas_=np.array([0.5]))
    search.scores_ = {"score": np.array([[[0.9], [0.9]]])}
    assert hl02_selection.tied_cells(search) == [(1.0, 0.5), (2.0, 0.5)]


def test_problem_sizes() -> None:
    assert [hl02_stopping.problem_size(method, 300, 3) for method in ("ovo", "ova", "ww")] == [200, 300, 600]


def test_findings_of_dgi11() -> None:
    """The sentences follow from the numbers, whether they agree with the paper or not."""
    names = ("a", "b", "c")
    rates = {"ww": 0.9, "llw": 0.95, "cs": 0.7, "ova": 0.8, dgi11_table2.FINE: 0.7}
    cells: Cells = {(name, m): {"accuracies": [rate], "done": True} for name in names for m, rate in rates.items()}
    lines = "\n".join(dgi11_table2.report(cells, Settings(names, splits=1)).lines)
    assert "llw has average rank 1.00; the best is llw" in lines
    assert "ww better than cs by rank (paper: yes): yes" in lines
    assert "ova last (paper: yes): no" in lines
    assert "cs at 1e-5 has a higher median on 0 of 3 sets" in lines


def test_printed_numbers_are_complete() -> None:
    assert set(dgi11.TABLE_2) == set(dgi11.TABLE_3) == set(dgi11.TABLE_3_OVA_SECONDS) == set(DGI11_PARAMETERS)
    for cells in dgi11.TABLE_3.values():
        assert set(cells) == {*((m, s) for m in ("ww", "llw") for s in ("smo", "s2do")), ("cs", "s2do")}
        for machine in ("ww", "llw"):
            assert cells[machine, "s2do"][0] < cells[machine, "smo"][0]
    for table in (printed_hl02.TABLE_2, printed_hl02.TRAINING_SECONDS, printed_hl02.SUPPORT_VECTORS):
        assert set(table) == set(printed_hl02.TABLE_1) == set(HL02_PARAMETERS)
        assert all(set(row) == set(hl02.BIAS) for row in table.values())
    assert set(printed_hl02.TABLE_4) == set(printed_hl02.TABLE_4_C) == set(hl02.SMALL)
    for each in (kcsl04.TABLE_32, kcsl04.TABLE_51, kcsl04.TABLE_52, kcsl04.TABLE_D1):
        assert set(each) == set(kcsl04.TABLE_31)


def test_the_papers_own_ranks() -> None:
    """DGI11 says that llw is significantly the best of its Table 2 and ww better than cs."""
    comparison = compare_ranks([list(row.values()) for row in dgi11.TABLE_2.values()], list(dgi11.TABLE_2["iris"]))
    rank = dict(zip(comparison.names, comparison.ranks.tolist(), strict=True))
    assert min(rank, key=lambda machine: rank[machine]) == "llw"
    assert rank["ww"] < rank["cs"]

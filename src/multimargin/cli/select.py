"""``multimargin select``: C and gamma by cross-validation, with grid.py's options, lines and file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from multimargin import SVCCV
from multimargin.base.files import is_stdout, write_text
from multimargin.cli import models
from multimargin.cli.command import option
from multimargin.cli.cross_validation import folds_of
from multimargin.cli.data import named, on_terminal, save_then_say, training_table
from multimargin.cli.files import check_writable
from multimargin.cli.options import (
    LIMITS,
    DataPath,
    WeightedCommand,
    common_options,
    data_options,
    exponents_option,
    joined,
    kernel_of,
    kernel_options,
    limit_options,
    machine_options,
    svc_params,
    threads,
)
from multimargin.cli.scaled import (
    advise_scaling,
    advise_wider_grid,
    needs_own_format,
    scale_option,
    scaling,
    whole_model,
)
from multimargin.kernels.table import has_gamma

SEARCH = "Search"
SEARCHES = ("grid", "nested", "two-line", "halving", "racing")

grid_options = joined(
    exponents_option("log2c", "-2,12,2", "Exponents of C.", panel=SEARCH),
    exponents_option("log2g", "-10,4,2", "Exponents of gamma, for kernels that have one.", panel=SEARCH),
    option(
        "-v", "n_folds", type=click.IntRange(min=2), default=5, show_default=True, panel=SEARCH, help="Number of folds."
    ),
    option("--seed", type=int, default=0, show_default=True, panel=SEARCH, help="Of the folds."),
)


@click.command("select", cls=WeightedCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("training_set_file", type=DataPath)
@click.argument("model_file", type=DataPath, required=False)
@joined(
    grid_options,
    option(
        "--search",
        type=click.Choice(SEARCHES),
        default="grid",
        show_default=True,
        panel=SEARCH,
        help="Which cells are tried.",
    ),
    option(
        "-out", "--out", type=DataPath, panel=SEARCH, help="Write a line 'log2c log2g rate' for each cell to this file."
    ),
    option("--report", type=DataPath, panel=SEARCH, help="Write the search as one html page."),
    option(
        "-resume",
        "--resume",
        type=DataPath,
        panel=SEARCH,
        help="A folder in which finished cells are kept, to go on from.",
    ),
    option("--jobs", type=int, panel=LIMITS, help="Workers (processes) of a search over units of work."),
    option(
        "--format",
        "model_format",
        type=click.Choice(models.FORMATS),
        default="auto",
        show_default=True,
        help="Format of the model file.",
    ),
    kernel_options,
    common_options,
    machine_options,
    limit_options,
    data_options,
    scale_option,
)
def select_parameters(training_set_file: Path, model_file: Path | None, **given: Any) -> None:
    """Choose C and gamma by cross-validation; train with them on all rows where MODEL_FILE is given.

    The last line of the output is "C gamma rate", as grid.py's.
    """
    for name, path in (("model_file", model_file), ("--out", given["out"]), ("--report", given["report"])):
        if path is not None:
            check_writable(name, path)
    precomputed = kernel_of(given) == "precomputed"
    table = training_table(training_set_file, given, precomputed=precomputed)
    X, y = named(table), table.y
    assert y is not None
    advise_scaling(X, given, precomputed=precomputed)
    scaler, X = scaling(given, X)
    own = needs_own_format(given, scaler)
    search = SVCCV(
        **svc_params(given, y),
        Cs=np.exp2(given["log2c"]),
        gammas=np.exp2(given["log2g"]) if has_gamma(kernel_of(given)) else None,
        cv=folds_of(y, given["n_folds"], given["seed"]),
        search=given["search"],
        n_jobs=given["jobs"],
        resume=given["resume"],
        refit=model_file is not None or given["report"] is not None,
        verbose=on_terminal() and not given["quiet"],
    )
    with threads(given["threads"]):
        search.fit(X, y)
    cells, lines = _results(search, given)

    def save() -> None:
        if given["out"] is not None:
            write_text(given["out"], "\n".join(cells) + "\n")
        if model_file is not None:
            model = search.best_estimator_
            kind = models.choose_format(given["model_format"], model.get_params(deep=False), y, own=own)
            models.save(whole_model(scaler, model, table.label_name), model_file, kind)
        if given["report"] is not None:
            search.report(given["report"], X, y)

    save_then_say(save, lines, elsewhere=any(map(is_stdout, (model_file, given["out"], given["report"]))))
    best = search.best_params_
    advise_wider_grid(best["C"], best["gamma"] if has_gamma(kernel_of(given)) else np.nan, given)


def _results(search: Any, given: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the lines of the scored cells, for the file and for stdout, where the best one comes last."""
    if not hasattr(search, "best_params_"):
        raise click.ClickException(
            "no cell was finished in time; raise --max-time, or try fewer values of C and gamma."
        )
    results, best = search.cv_results_, None
    names = ("C", "gamma") if has_gamma(kernel_of(given)) else ("C",)
    kept, shown = [], []
    for params, score in zip(results["params"], results["mean_test_score"], strict=True):
        if np.isnan(score):
            continue
        cell = {name: params[name] for name in names}
        where = " ".join(f"{np.log2(value):g}" for value in cell.values())
        rate = 100 * score
        best = (rate, cell) if best is None or rate > best[0] else best
        kept.append(f"{where} {rate:g}")
        named = ", ".join(f"{name[0].lower()}={value:g}" for name, value in best[1].items())
        shown.append(f"[local] {where} {rate:g} (best {named}, rate={best[0]:g})")
    chosen = [f"{search.best_params_[name]:.17g}" for name in names]
    last = " ".join([*chosen, f"{100 * search.best_score_:g}"])
    return kept, [last] if given["quiet"] else [*shown, last]

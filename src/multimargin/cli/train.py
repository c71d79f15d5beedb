"""``multimargin train``: svm-train's flags, files and lines, for every machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from multimargin import SVC, LinearSVC
from multimargin.base.files import is_stdout
from multimargin.cli import models
from multimargin.cli.command import option, tell
from multimargin.cli.cross_validation import cross_validate
from multimargin.cli.data import default_model_path, named, on_terminal, save_then_say, say, training_table
from multimargin.cli.files import check_writable
from multimargin.cli.options import (
    LIBSVM,
    LIMITS,
    MACHINE,
    POSITIVE,
    DataPath,
    WeightedCommand,
    common_options,
    data_options,
    gamma_option,
    joined,
    kernel_of,
    kernel_options,
    limit_options,
    machine_options,
    svc_params,
    threads,
    zero_or_one,
)
from multimargin.cli.scaled import advise_scaling, needs_own_format, scale_option, scaling, whole_model
from multimargin.cli.training_lines import lines_of, summary_of

fit_options = joined(
    option(
        "-c",
        "cost",
        type=POSITIVE,
        default=1.0,
        show_default=True,
        panel=LIBSVM,
        help="C, the cost of margin violations.",
    ),
    gamma_option,
    zero_or_one("-h", "shrinking", 1, "Whether to shrink: 0 or 1."),
    zero_or_one("-b", "probability", 0, "Whether to train probabilities: 0 or 1."),
    option(
        "-v",
        "n_folds",
        type=click.IntRange(min=2),
        metavar="N",
        panel=LIBSVM,
        help="Cross-validation with N folds, and no model.",
    ),
    option(
        "--linear",
        is_flag=True,
        panel=MACHINE,
        help="Train a linear machine by its weights (LinearSVC): for very many rows.",
    ),
    option("--solver", default="auto", show_default=True, panel=MACHINE, help="The solver, by its name."),
    option(
        "--calibration",
        type=click.Choice(["sigmoid", "isotonic", "coupling"]),
        metavar="NAME",
        panel=MACHINE,
        help="The calibration of probabilities: sigmoid, isotonic or coupling (what -b 1 means for ovo and dag).",
    ),
    option("--max-iter", type=int, default=-1, show_default=True, panel=LIMITS, help="Most steps."),
    option(
        "--format",
        "model_format",
        type=click.Choice(models.FORMATS),
        default="auto",
        show_default=True,
        help="Format of the model file.",
    ),
    option("--seed", type=int, default=0, show_default=True, help="Of the folds of -v."),
    option("--keep", is_flag=True, panel=LIMITS, help="On Ctrl-C write the model as it is then."),
    option("--verbose", is_flag=True, help="svm-train's lines for each pair of classes, as mm-train prints them."),
    scale_option,
)


@click.command(cls=WeightedCommand, context_settings={"help_option_names": ["--help"]})
@click.argument("training_set_file", type=DataPath)
@click.argument("model_file", type=DataPath, required=False)
@joined(kernel_options, fit_options, common_options, machine_options, limit_options, data_options)
@click.pass_context
def train(ctx: click.Context, /, training_set_file: Path, model_file: Path | None, **given: Any) -> None:
    """Train a machine on a data file, as svm-train does, and write the model.

    Without MODEL_FILE it is called like the data file, with .model, in the current folder.
    """
    path = model_file or default_model_path(training_set_file)
    folds = given["n_folds"]
    if folds is None:
        check_writable("model_file", path)
    precomputed = kernel_of(given) == "precomputed"
    table = training_table(training_set_file, given, precomputed=precomputed)
    X, y = named(table), table.y
    assert y is not None
    advise_scaling(X, given, precomputed=precomputed)
    scaler, X = scaling(given, X)
    params = train_params(given, y)
    kind = models.choose_format(given["model_format"], params, y, own=needs_own_format(given, scaler))
    with threads(given["threads"]):
        if folds is not None:
            correct = cross_validate(lambda limit: estimator(params | {"max_time": limit}, given), X, y, folds, given)
            say(f"Cross Validation Accuracy = {100.0 * correct / len(y):g}%")
            return
        model = estimator(params, given).fit(X, y)
    blocks = given["verbose"] or ctx.find_root().info_name == "mm-train"
    lines = [] if given["quiet"] else list(lines_of(model, y) if blocks else summary_of(model, y, given["scale"]))
    whole = whole_model(scaler, model, table.label_name)
    save_then_say(lambda: models.save(whole, path, kind), lines, elsewhere=is_stdout(path))
    if on_terminal() and not given["quiet"]:
        tell(f"Model: {path}")


def train_params(given: dict[str, Any], y: np.ndarray) -> dict[str, Any]:
    """Return the parameters of SVC from the options."""
    pairs = given["multi_class"] in ("ovo", "dag")
    wanted = ("coupling" if pairs else "sigmoid") if given["probability"] else None
    return svc_params(given, y) | {
        "C": given["cost"],
        "gamma": given["gamma"],
        "shrinking": bool(given["shrinking"]),
        "calibration": given["calibration"] or wanted,
        "solver": given["solver"],
        "max_iter": given["max_iter"],
    }


def estimator(params: dict[str, Any], given: dict[str, Any]) -> Any:
    """Return the unfitted estimator; on a terminal it shows a line of progress."""
    verbose, kept = on_terminal() and not given["quiet"], "keep" if given["keep"] else "raise"
    if not given["linear"]:
        return SVC(**params, verbose=verbose, on_interrupt=kept)
    if params["kernel"] not in ("linear", "rbf") or params["calibration"] is not None:
        raise click.ClickException(
            "--linear trains weights, without another kernel and without probabilities; leave out -t, --kernel, -b and "
            "--calibration."
        )
    names = ("C", "multi_class", "loss", "tol", "class_weight", "max_iter", "max_time", "solver")
    bias = "exact" if params["bias"] == "auto" else params["bias"]
    return LinearSVC(**{name: params[name] for name in names}, bias=bias, verbose=verbose, on_interrupt=kept)

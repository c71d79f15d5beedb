"""``multimargin path``: a machine along C, each started from the one before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from multimargin import SVC, LinearSVC, PathDisplay, svm_path
from multimargin.base.files import is_stdout, whole_file
from multimargin.cli.command import option, tell
from multimargin.cli.data import on_terminal, read_training, save_then_say
from multimargin.cli.files import check_writable
from multimargin.cli.options import (
    MACHINE,
    DataPath,
    WeightedCommand,
    common_options,
    data_options,
    exponents_option,
    gamma_option,
    joined,
    kernel_of,
    kernel_options,
    limit_options,
    machine_options,
    svc_params,
    threads,
)

HEAD = ("C", "seconds", "steps", "KKT violation", "relative gap", "face changes", "ended")


@click.command("path", cls=WeightedCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("training_set_file", type=DataPath)
@joined(
    exponents_option("log2c", "-2,12,2", "Exponents of C."),
    gamma_option,
    option("--linear", is_flag=True, panel=MACHINE, help="Linear machines by their weights (LinearSVC)."),
    option("--picture", type=DataPath, help="Draw the path to this file (png, pdf, svg)."),
    kernel_options,
    common_options,
    machine_options,
    limit_options,
    data_options,
)
def path_along_cost(training_set_file: Path, **given: Any) -> None:
    """Train a machine for each of many C, each started from the solution before, and print steps and seconds of
    each."""
    if given["picture"] is not None:
        check_writable("--picture", given["picture"])
    X, y = read_training(training_set_file, given, precomputed=kernel_of(given) == "precomputed")
    params = svc_params(given, y)
    if given["linear"]:
        names = ("multi_class", "loss", "tol", "class_weight", "max_time")
        bias = "exact" if params["bias"] == "auto" else params["bias"]
        estimator: Any = LinearSVC(**{name: params[name] for name in names}, bias=bias)
    else:
        estimator = SVC(**params, gamma=given["gamma"])
    estimator.set_params(verbose=on_terminal() and not given["quiet"])
    with threads(given["threads"]):
        path = svm_path(X, y, Cs=np.exp2(given["log2c"]), estimator=estimator, keep_models=given["picture"] is not None)
    lines = _table(path)
    if path.saturation_C is not None:
        lines.append(f"The weights stay the same from C = {path.saturation_C:g} on (proved).")
    elif path.coefs is not None:
        lines.append("No C is proved from which on the weights stay the same.")
    picture = given["picture"]
    draw = (lambda: None) if picture is None else (lambda: _draw(path, X, y, picture))
    save_then_say(draw, lines, elsewhere=is_stdout(picture))


def _table(path: Any) -> list[str]:
    cells = [HEAD]
    for index, proof in enumerate(path.certificates):
        cells.append(
            (
                f"{path.Cs[index]:g}",
                f"{path.seconds[index]:.3f}",
                str(path.n_iter[index]),
                f"{proof.kkt_violation:.1e}",
                f"{proof.relative_gap:.1e}",
                str(path.face_changes[index]),
                proof.stop_reason,
            )
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]


def _draw(path: Any, X: Any, y: np.ndarray, out: Path) -> None:
    try:
        display = PathDisplay.from_path(path, X, y)
    except ImportError as error:
        raise click.ClickException(
            "--picture needs matplotlib, which is not installed; get it with: pip install 'multimargin[plots]'"
        ) from error
    with whole_file(out) as handle:
        display.figure_.savefig(handle, format=out.suffix.lstrip(".").lower() or "png", dpi=150)
    tell(f"Figure: {out}")

"""``multimargin demo``: every machine on scikit-learn's digits, as one table, one sentence and one figure."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from multimargin.base.files import whole_file
from multimargin.cli import demo_run
from multimargin.cli.command import Command, tell
from multimargin.cli.demo_run import Digits, Run
from multimargin.cli.files import check_writable

TABLE_WIDTH = 100
HARD_DIGITS = 12
SHOWN_MACHINE = "ww"
NO_FIGURE = "No figure was drawn, because matplotlib is missing; get it with: pip install 'multimargin[plots]'"


@click.command(cls=Command)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("demo.png"),
    show_default=True,
    help="File for the figure; its ending chooses the format (png, pdf, svg).",
)
@click.option("--quick", is_flag=True, help=f"Train on {demo_run.QUICK_ROWS} digits only.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Most seconds that one machine may train; its result at that time is shown.",
)
def demo(out: Path, quick: bool, time_limit: float) -> None:
    """Train every machine on scikit-learn's digits and compare them."""
    check_writable("--out", out)
    _check_format(out)
    digits = demo_run.load(quick)
    runs: list[Run] = []
    try:
        _train_all(digits, time_limit, runs)
    except KeyboardInterrupt:
        if runs:
            _show(runs, digits)  # show the finished machines
        raise
    try:
        _save_figure(out, runs, digits)
    finally:
        _show(runs, digits)


def _check_format(out: Path) -> None:
    try:
        from multimargin.plotting.machines_figure import FORMATS
    except ImportError:
        return
    if out.suffix.lstrip(".").lower() not in FORMATS:
        raise click.ClickException(f"--out {out} has no known ending; use one of .{', .'.join(FORMATS)}.")


def _train_all(digits: Digits, time_limit: float, runs: list[Run]) -> None:
    """Train all, appending to ``runs``; with a progress bar on stderr, on a terminal only."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    bar = Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal)
    with bar:
        task = bar.add_task("", total=len(demo_run.RUNS))
        for name in demo_run.RUNS:
            bar.update(task, description=f"training {name}")
            runs.append(demo_run.train(name, digits, time_limit))
            bar.advance(task)


def _show(runs: list[Run], digits: Digits) -> None:
    console = Console()
    if not console.is_terminal:  # not a terminal: do not limit the width
        console = Console(width=TABLE_WIDTH)
    console.print(_table(runs, digits))
    console.print(reading(runs), highlight=False, soft_wrap=True)


def _title(digits: Digits) -> str:
    return (
        f"Handwritten digits: {len(digits.y_train)} to train on, {len(digits.y_test)} to test, "
        f"rbf kernel, C={demo_run.C:g}, gamma={demo_run.GAMMA:g}"
    )


def _table(runs: list[Run], digits: Digits) -> Table:
    table = Table(title=_title(digits), title_justify="left", title_style="bold")
    table.add_column("machine", no_wrap=True)
    for header in ("test accuracy", "seconds", "support vectors", "KKT violation", "relative gap"):
        table.add_column(header, justify="right")
    table.add_column("ended", no_wrap=True)
    for run in runs:
        proof = run.certificate
        table.add_row(
            run.name,
            f"{100 * run.accuracy:.1f} %",
            f"{run.seconds:.2f}",
            str(run.n_support),
            "-" if proof is None else f"{proof.kkt_violation:.1e}",
            "-" if proof is None else f"{proof.relative_gap:.1e}",
            "-" if proof is None else proof.stop_reason,
        )
    return table


def reading(runs: list[Run]) -> str:
    """Return a summary of the table in one sentence."""
    ours = [run for run in runs if run.certificate is not None]
    if not ours:
        return "No machine was trained."
    proved = sum(run.proved for run in ours)
    best = max(ours, key=lambda run: run.accuracy)
    tol = best.certificate.tol if best.certificate is not None else float("nan")
    text = (
        f"Reading: {proved} of {len(ours)} machines are proved optimal to tol={tol:g} by a check in float64, "
        f"and the best on the test digits is {best.name} with {100 * best.accuracy:.1f} %"
    )
    peers = [run for run in runs if run.certificate is None]
    if peers:
        text += f" (scikit-learn's SVC: {100 * peers[0].accuracy:.1f} %, without a proof)"
    return f"{text}; chance moves such a number by {100 * best.standard_error:.1f} points."


def _save_figure(out: Path, runs: list[Run], digits: Digits) -> None:
    try:
        from multimargin.plotting.machines_figure import ExamplePicture, MachinePoint, draw_machines
    except ImportError:
        tell(NO_FIGURE)
        return
    points = [
        MachinePoint(run.name, run.accuracy, run.standard_error, run.seconds, run.certificate is None) for run in runs
    ]
    shown = next(run for run in runs if run.name == SHOWN_MACHINE)
    pictures = [
        ExamplePicture(digit.image, str(digit.truth), str(digit.predicted))
        for digit in demo_run.hardest(shown, digits, HARD_DIGITS)
    ]
    figure = draw_machines(points, pictures, title=_title(digits), shown=shown.name)
    try:
        with whole_file(out) as handle:
            figure.savefig(handle, format=out.suffix.lstrip(".").lower(), dpi=150)
    except OSError as error:
        raise click.ClickException(
            f"--out {out} could not be written ({error.strerror}); free some space or choose another folder."
        ) from error
    tell(f"Figure: {out}")

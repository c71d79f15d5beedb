"""``multimargin verify``: the certificate of a model, recomputed from its training data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import multimargin
from multimargin.cli import models
from multimargin.cli.command import Command, option
from multimargin.cli.data import named, read_as_trained, say
from multimargin.cli.options import LIMITS, DataPath, data_options, threads
from multimargin.cli.scaled import parts_of, scaled_table
from multimargin.data_files.svmlight import read_precomputed


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("training_set_file", type=DataPath)
@click.argument("model_file", type=DataPath)
@option(
    "--threads",
    "n_threads",
    type=click.IntRange(min=1),
    panel=LIMITS,
    help="Maximum number of threads; all by default.",
)
@data_options
@click.pass_context
def verify(ctx: click.Context, /, training_set_file: Path, model_file: Path, **given: Any) -> None:
    """Check a model against its training data; the exit code is 0 if it is optimal to its tolerance, else 1."""
    if models.is_model(training_set_file) and not models.is_model(model_file):  # either order is clear
        training_set_file, model_file = model_file, training_set_file
    if models.is_text_model(model_file):
        raise click.ClickException(
            f"{model_file} is LIBSVM's text, which has neither C nor the rows of the support vectors; train with "
            "--format multimargin for a model that can be verified."
        )
    whole = models.load(model_file)
    scaler, model = parts_of(whole)
    if getattr(model, "kernel", None) == "precomputed":
        table = read_precomputed(training_set_file, square=True)
    else:
        width = int(model.n_features_in_)
        table = scaled_table(read_as_trained(training_set_file, whole, given, n_features=width), scaler)
    assert table.y is not None
    with threads(given["n_threads"]):
        certificate = multimargin.verify(model, named(table), table.y)
    for name in ("primal", "dual", "gap", "relative_gap", "kkt_violation", "tol"):
        say(f"{name:<14} {getattr(certificate, name):.10g}")
    say(f"{'optimal':<14} {'yes' if certificate.optimal else 'no'}")
    if not certificate.optimal:
        ctx.exit(1)

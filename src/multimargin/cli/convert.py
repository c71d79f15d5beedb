"""``multimargin convert``: data files and model files from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from multimargin.cli import models
from multimargin.cli.command import Command, option
from multimargin.cli.files import check_writable
from multimargin.cli.options import DataPath, data_options
from multimargin.data_files import read_data, write_data


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", type=DataPath)
@click.argument("target", type=DataPath)
@option(
    "--format",
    "model_format",
    type=click.Choice([models.LIBSVM, models.OWN]),
    help="Format of a model; by default the other one than the source has.",
)
@data_options
def convert(source: Path, target: Path, **given: Any) -> None:
    """Convert a data file (LIBSVM's text, .csv, .parquet, .npz, as the endings say) or a model file (also to .onnx)."""
    check_writable("target", target)
    if models.is_model(source):
        other = models.OWN if models.is_text_model(source) else models.LIBSVM
        kind = models.ONNX if target.suffix.lower() == ".onnx" else given["model_format"] or other
        models.save(models.load(source), target, kind)
        return
    if given["model_format"] is not None:
        raise click.ClickException(
            f"--format is for models, and {source} is none; the endings say the formats of data."
        )
    write_data(target, read_data(source, label=given["label"], label_needed=False, zero_based=given["zero_based"]))

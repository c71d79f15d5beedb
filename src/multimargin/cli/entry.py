"""The entry points: ``multimargin`` with all commands, and svm-train's, svm-predict's and svm-scale's counterparts."""

from __future__ import annotations

import click

from multimargin import __version__
from multimargin.cli.command import Commands
from multimargin.cli.compare import compare
from multimargin.cli.convert import convert
from multimargin.cli.demo import demo
from multimargin.cli.info import info
from multimargin.cli.path import path_along_cost
from multimargin.cli.predict import predict
from multimargin.cli.scale import scale
from multimargin.cli.select import select_parameters
from multimargin.cli.train import train
from multimargin.cli.verify import verify


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="multimargin", message="%(prog)s %(version)s")
def main() -> None:
    """Exact kernel support vector machines for many classes, each with a proof of optimality."""


COMMANDS = (train, predict, scale, select_parameters, path_along_cost, compare, verify, info, convert, demo)
for command in COMMANDS:
    main.add_command(command)


def train_main() -> None:
    """``mm-train``: ``multimargin train`` under one name."""
    train.main(prog_name="mm-train")


def predict_main() -> None:
    """``mm-predict``: ``multimargin predict`` under one name."""
    predict.main(prog_name="mm-predict")


def scale_main() -> None:
    """``mm-scale``: ``multimargin scale`` under one name."""
    scale.main(prog_name="mm-scale")

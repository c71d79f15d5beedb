"""Helpers of the tests of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result
from sklearn.datasets import load_iris

from multimargin.cli import main
from multimargin.data_files import Table, write_data

Invoke = Callable[..., Result]


def invoke(*arguments: object) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def succeed(*arguments: object) -> Result:
    """Run the command, which must succeed."""
    result = invoke(*arguments)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return result


def refused(*arguments: object) -> str:
    """Run the command, which must end with 1 and print no results; return its messages."""
    result = invoke(*arguments)
    assert result.exit_code == 1, (result.stdout, result.exception)
    assert not result.stdout
    return result.stderr


def write_iris(path: Path, *, rows: slice = slice(None)) -> Path:
    """Write iris with the labels 1, 2 and 3, in an order that mixes the classes."""
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    write_data(path, Table(X[order][rows], y[order][rows] + 1))
    return path

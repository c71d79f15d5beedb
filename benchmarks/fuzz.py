"""Mutated files: no crash, no hang, no wrong success.

    python -m benchmarks.fuzz models [--count 100000] [--seed 0]
    python -m benchmarks.fuzz data [--count 100000]

Every file is a valid one with something changed. It must be refused by the one error of its reader, or be read
correctly. Prints how many were refused, and every file that was handled wrongly; then the exit code is 1.
"""

from __future__ import annotations

import importlib
import importlib.util

import click

from benchmarks.fuzz_models import models


@click.group()
def main() -> None:
    """Read mutated files."""


main.add_command(models)
if importlib.util.find_spec("benchmarks.fuzz_data") is not None:
    main.add_command(importlib.import_module("benchmarks.fuzz_data").data)

if __name__ == "__main__":
    main()

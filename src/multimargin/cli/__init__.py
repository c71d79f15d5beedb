"""The command ``multimargin``: thin commands over the library, results on stdout, messages on stderr."""

from multimargin.cli.main import main

__all__ = ["main"]

"""The command ``multimargin``: thin commands over the library, results on stdout, messages on stderr."""

from multimargin.cli.entry import main, predict_main, scale_main, train_main

__all__ = ["main", "predict_main", "scale_main", "train_main"]

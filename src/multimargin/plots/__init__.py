"""The public path of geometry; the pictures themselves are in ``multimargin.plotting``."""

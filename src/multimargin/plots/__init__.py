"""Figures. Needs matplotlib (``pip install 'multimargin[plots]'``), which is imported in here only."""

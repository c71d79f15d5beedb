"""Figures. They need matplotlib (``pip install 'multimargin[plots]'``), which is imported when one is drawn."""

"""Choosing C and gamma: which cells are tried, how they are run, and what came out."""

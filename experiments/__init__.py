"""The papers' experiments and our own, each a command: ``python -m experiments.NAME``."""

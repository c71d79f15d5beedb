"""Hashes of all fitted attributes; see ``python -m benchmarks.golden --help``."""

"""Failing memory and failing threads in every public call; see ``python -m benchmarks.faults --help``."""

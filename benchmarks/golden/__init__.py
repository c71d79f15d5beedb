"""Hashes of everything that fits show; ``python -m benchmarks.golden`` says what for."""

"""Kernels: their parameters, their values from the C++ core, and bounds on their rounding."""

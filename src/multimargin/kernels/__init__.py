"""Kernels: their numbers, their values from the C++ core, and how far rounding moves them."""

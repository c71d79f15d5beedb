"""Helpers that all other packages use: files, memory, interrupts, matrices."""

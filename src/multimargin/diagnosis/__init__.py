"""Diagnostics of data and parameters, each with the line of code that fixes it."""

from multimargin.diagnosis.findings import Diagnosis, Finding
from multimargin.diagnosis.run_checks import diagnose

__all__ = ["Diagnosis", "Finding", "diagnose"]

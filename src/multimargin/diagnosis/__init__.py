"""The doctor: what is wrong with data and parameters, and the line that helps."""

from multimargin.diagnosis.findings import Diagnosis, Finding
from multimargin.diagnosis.run_checks import diagnose

__all__ = ["Diagnosis", "Finding", "diagnose"]

"""The doctor: what is wrong with data and parameters, and the line that helps."""

from multimargin.diagnosis.doctor import diagnose
from multimargin.diagnosis.findings import Diagnosis, Finding

__all__ = ["Diagnosis", "Finding", "diagnose"]

"""A search as one html file, as the guide imports it."""

from multimargin.model_selection.html_report import write_report

__all__ = ["write_report"]

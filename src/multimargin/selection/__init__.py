"""The public path of html_report; the searches themselves are in ``multimargin.model_selection``."""

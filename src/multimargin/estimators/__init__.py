"""The estimators, and the path along C."""

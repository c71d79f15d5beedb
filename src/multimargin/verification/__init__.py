"""Checking fitted models against their data, and bounds on their error."""

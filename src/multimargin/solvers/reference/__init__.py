"""The algorithms in plain NumPy, beside the papers: the oracle of the tests."""

"""From parameters and data to the attributes of a fitted estimator."""

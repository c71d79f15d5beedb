"""Problems as values: machines, classes and weights, the dual problem and its feasible points."""

"""From a problem to a solution and its certificate."""

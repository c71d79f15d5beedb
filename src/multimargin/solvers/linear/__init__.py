"""Linear machines: by their weights, not by kernel rows."""

"""Which support vectors are bounded, as the guide names it."""

from multimargin.plotting.geometry import bounded_support

__all__ = ["bounded_support"]

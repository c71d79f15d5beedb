"""Learning from streams: one example after the other, forgetting, choosing what to label next."""

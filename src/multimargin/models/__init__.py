"""Fitted models: what they predict, and probabilities from their scores."""

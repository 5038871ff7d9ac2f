"""Scorers, objectives, training and evaluation. Knows nothing of animals."""

"""Scorers, losses, training and evaluation. Independent of what the images show."""

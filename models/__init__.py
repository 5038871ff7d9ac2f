"""Scorers, losses, training and evaluation, mostly independent of what the images show."""

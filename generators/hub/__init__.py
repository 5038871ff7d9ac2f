"""Converts data sets in the form of the Hugging Face hub to the official files that our loaders read."""

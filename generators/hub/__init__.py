"""Data sets as the Hugging Face hub has them, made the official files that our loaders read."""

"""Training data besides our scenes, and mixtures of several data sets."""

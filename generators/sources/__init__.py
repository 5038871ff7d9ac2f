"""Training data from elsewhere, and several data sets as one."""

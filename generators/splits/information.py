"""Normalised mutual information of two factors."""

import numpy as np
from jaxtyping import Float64, Real


def entropy(shares: Float64[np.ndarray, "..."]) -> float:
    """Entropy in nats of shares that sum to 1."""
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())


def normalised_mutual_information(table: Real[np.ndarray, "rows columns"]) -> float:
    """Mutual information of rows and columns over the arithmetic mean of both entropies, from 0 to 1.

    The normaliser is scikit-learn's default. 0 if both entropies are 0: no counts, or one row and one column.
    """
    joint = table / max(table.sum(), 1)
    both = entropy(joint.sum(0)) + entropy(joint.sum(1))
    return max(2 * (both - entropy(joint)) / both, 0.0) if both > 0 else 0.0

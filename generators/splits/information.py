"""How much two factors say of each other."""

import numpy as np
from jaxtyping import Float64, Real


def entropy(shares: Float64[np.ndarray, "..."]) -> float:
    """In nats; shares sum to 1."""
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())


def normalised_mutual_information(table: Real[np.ndarray, "rows columns"]) -> float:
    """How much rows and columns tell of each other, 0 to 1: over the arithmetic mean of both entropies, as is
    scikit-learn's default.

    0 where there is nothing to tell: no counts, or one row and one column.
    """
    joint = table / max(table.sum(), 1)
    both = entropy(joint.sum(0)) + entropy(joint.sum(1))
    return max(2 * (both - entropy(joint)) / both, 0.0) if both > 0 else 0.0

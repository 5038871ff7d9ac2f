"""A fast hash of 64-bit words, for tables and permutations; identities are hashed in identity.py."""

import numpy as np
from jaxtyping import UInt64

GOLDEN, FIRST, SECOND = (np.uint64(v) for v in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def mixed(x: UInt64[np.ndarray, " n"]) -> UInt64[np.ndarray, " n"]:
    """Splitmix64's finaliser, a bijection of 64-bit words (Steele, Lea, Flood, *Fast splittable pseudorandom number
    generators*, OOPSLA 2014)."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))

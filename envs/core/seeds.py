"""Seeds derived from a number and text only."""

import hashlib

import numpy as np


def seed_of(seed: int, *parts: object) -> int:
    """A 63-bit seed that depends on `seed` and the text of `parts` only."""
    text = "\x1f".join(map(str, (seed, *parts)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *parts: object) -> np.random.Generator:
    """A random generator seeded with `seed_of(seed, *parts)`."""
    return np.random.default_rng(seed_of(seed, *parts))

"""A shuffle of any size, any part of which is computed without the rest: a balanced Feistel network with cycle walking.

Black and Rogaway, *Ciphers with arbitrary finite domains* (CT-RSA 2002), section 4: a network of six rounds permutes
the numbers below 4^h, the least power of four (but at least 4) that isn't below the size. If the result isn't below the
size, it is permuted again.
"""

import numpy as np
from jaxtyping import Int64, UInt64

from menagerie.envs.core.identity import GOLDEN, mix_bits

ROUNDS = 6
WORD = 2**64 - 1


class Permutation:
    """A permutation of 0 .. size - 1 that depends on the seed; called with positions, it returns the numbers there."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        half = max(1, -(-(size - 1).bit_length() // 2))
        self.half, self.low = np.uint64(half), np.uint64((1 << half) - 1)
        self.keys = mix_bits(np.uint64(seed & WORD) + GOLDEN * np.arange(1, ROUNDS + 1, dtype=np.uint64))

    def __call__(self, places: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
        numbers = self._permute(places.astype(np.uint64))
        while (beyond := numbers >= self.size).any():
            numbers[beyond] = self._permute(numbers[beyond])
        return numbers.astype(np.int64)

    def _permute(self, numbers: UInt64[np.ndarray, " n"]) -> UInt64[np.ndarray, " n"]:
        left, right = numbers >> self.half, numbers & self.low
        for key in self.keys:
            left, right = right, left ^ (mix_bits(right + key) & self.low)
        return (left << self.half) | right

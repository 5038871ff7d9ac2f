"""Batches as a pure function of (seed, step): a resumed run sees what an undisturbed one sees,
and two models with the same recipe see the same images in the same order."""

import numpy as np

from envs.common.seeds import seed_of


class Stream:
    """Endless shuffled passes over some indices; any part of it can be asked for."""

    def __init__(self, indices: np.ndarray, seed: int, name: str) -> None:
        self.indices, self.seed, self.name = indices, seed, name

    def take(self, start: int, count: int) -> np.ndarray:
        """Items `start` to `start + count` of the stream."""
        size = len(self.indices)
        passes = range(start // size, (start + count - 1) // size + 1)
        orders = [np.random.default_rng(seed_of(self.seed, self.name, n)).permutation(size) for n in passes]
        offset = start - passes[0] * size
        return self.indices[np.concatenate(orders)[offset : offset + count]]


class BatchSampler:
    """Draws batches from all images alike, or lone animals and pairs in a fixed proportion; the
    first `warm_steps` batches show lone animals only."""

    def __init__(
        self, is_single: np.ndarray, batch: int, singles_share: float | None, seed: int, warm_steps: int = 0
    ) -> None:
        everything = np.arange(len(is_single))
        singles = Stream(everything[is_single], seed, "singles")
        self.warm, self.parts = [(singles, batch)], [(Stream(everything, seed, "all"), batch)]
        self.warm_steps = warm_steps if is_single.any() else 0
        if singles_share is not None and is_single.any() and not is_single.all():
            n_singles = round(singles_share * batch)
            pairs = Stream(everything[~is_single], seed, "pairs")
            self.parts = [(singles, n_singles), (pairs, batch - n_singles)]

    def indices(self, step: int) -> np.ndarray:
        """Indices of the batch of `step`."""
        parts = self.warm if step < self.warm_steps else self.parts
        return np.concatenate([stream.take(step * count, count) for stream, count in parts if count])

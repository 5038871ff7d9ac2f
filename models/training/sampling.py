"""Which items are in the batch of a step: a pure function of (seed, step), so that a resumed run sees
what an undisturbed one sees, and two models with the same recipe see the same images in the same order (but for the
partners that one of them wants by itself)."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import seed_of

SINGLES = "single_object"


class Stream:
    """Endless shuffled passes over some indices, of which any part can be taken."""

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
    """Draws batches from all images alike, or strata in fixed proportions; the first `single_steps` batches show
    single-object scenes only."""

    def __init__(
        self,
        is_single: Bool[np.ndarray, " n"],
        batch: int,
        singles_share: float | None,
        seed: int,
        single_steps: int = 0,
    ) -> None:
        everything = np.arange(len(is_single))
        singles = Stream(everything[is_single], seed, "singles")
        self.first, self.parts = [(singles, batch)], [(Stream(everything, seed, "all"), batch)]
        self.single_steps = single_steps if is_single.any() else 0
        if singles_share is not None and is_single.any() and not is_single.all():
            n_singles = round(singles_share * batch)
            pairs = Stream(everything[~is_single], seed, "pairs")
            self.parts = [(singles, n_singles), (pairs, batch - n_singles)]

    def indices(self, step: int) -> np.ndarray:
        """Indices of the batch of `step`."""
        parts = self.first if step < self.single_steps else self.parts
        return np.concatenate([stream.take(step * count, count) for stream, count in parts if count])


class ShareSampler:
    """Draws from named strata, as many of each as its share of a batch: for mixtures of data sets."""

    def __init__(
        self, strata: Mapping[str, Bool[np.ndarray, " n"]], shares: Mapping[str, float], batch: int, seed: int
    ) -> None:
        # Whole numbers that add up: rounded sums, not sums of the rounded.
        ends = np.round(np.cumsum([0.0, *shares.values()]) * batch).astype(int)
        counts = np.diff(ends)
        if lost := next((name for name, n in zip(shares, counts, strict=True) if shares[name] and not n), ""):
            raise UserError(
                f"{lost} has a share of {shares[lost]:.2%} of each batch of {batch}, which is no item at all; raise "
                "--batch, or train on it apart"
            )
        streams = [Stream(np.flatnonzero(strata[name]), seed, name) for name in shares]
        self.parts = [(stream, int(count)) for stream, count in zip(streams, counts, strict=True) if count]

    def indices(self, step: int) -> np.ndarray:
        """Indices of the batch of `step`."""
        return np.concatenate([stream.take(step * count, count) for stream, count in self.parts])

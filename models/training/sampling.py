"""Chooses the items of each batch, as a pure function of (seed, step): a resumed run sees the same as an undisturbed
one, and models with the same recipe see the same images in the same order (except for partners that one of them
wants)."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import seed_of

SINGLES = "single_object"


class Stream:
    """An endless sequence of shuffled passes over some indices; any part can be computed directly."""

    def __init__(self, indices: np.ndarray, seed: int, name: str) -> None:
        self.indices, self.seed, self.name = indices, seed, name

    def take(self, start: int, count: int) -> np.ndarray:
        """Items `start` to `start + count` of the stream."""
        size = len(self.indices)
        passes = range(start // size, (start + count - 1) // size + 1)
        orders = [np.random.default_rng(seed_of(self.seed, self.name, n)).permutation(size) for n in passes]
        offset = start - passes[0] * size
        return self.indices[np.concatenate(orders)[offset : offset + count]]


Parts = Sequence[tuple[Stream, int]]


class BatchSampler:
    """Draws a fixed number of items from each of several streams, or, in the first `warm_steps`, from other streams."""

    def __init__(self, parts: Parts, warm: Parts = (), warm_steps: int = 0) -> None:
        self.parts, self.warm, self.warm_steps = parts, warm, warm_steps

    def indices(self, step: int) -> np.ndarray:
        """The indices in the batch of `step`."""
        parts = self.warm if step < self.warm_steps else self.parts
        return np.concatenate([stream.take(step * count, count) for stream, count in parts if count])


def with_singles(
    is_single: Bool[np.ndarray, " n"], batch: int, singles_share: float | None, seed: int, single_steps: int = 0
) -> BatchSampler:
    """A sampler of all images alike, or of single-object scenes and others in fixed proportions; the first
    `single_steps` show single-object scenes only."""
    everything = np.arange(len(is_single))
    singles = Stream(everything[is_single], seed, "singles")
    parts = [(Stream(everything, seed, "all"), batch)]
    if singles_share is not None and is_single.any() and not is_single.all():
        n_singles = round(singles_share * batch)
        parts = [(singles, n_singles), (Stream(everything[~is_single], seed, "pairs"), batch - n_singles)]
    return BatchSampler(parts, [(singles, batch)], single_steps if is_single.any() else 0)


def by_shares(
    strata: Mapping[str, Bool[np.ndarray, " n"]], shares: Mapping[str, float], batch: int, seed: int
) -> BatchSampler:
    """A sampler for mixtures of data sets: each batch has a number of items from each stratum by its share."""
    # Whole numbers with the right sum: differences of rounded cumulative sums.
    counts = np.diff(np.round(np.cumsum([0.0, *shares.values()]) * batch).astype(int)).tolist()
    if lost := next((name for name, n in zip(shares, counts, strict=True) if shares[name] and not n), ""):
        raise UserError(
            f"{lost} has a share of {shares[lost]:.2%} of each batch of {batch}, which is no item at all; raise "
            "--batch, or train on it apart"
        )
    streams = [Stream(np.flatnonzero(strata[name]), seed, name) for name in shares]
    return BatchSampler(list(zip(streams, counts, strict=True)))

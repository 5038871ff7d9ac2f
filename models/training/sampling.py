"""Chooses the items of each batch, as a pure function of (seed, step): a resumed run sees the same items as an
uninterrupted one, and models with the same recipe see the same images in the same order (except for counterfactuals
that one of them wants)."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import seed_of

SINGLES = "single_object"


class Stream:
    """An endless sequence of shuffled passes over some indices, or over 0 .. n - 1 for a number n; any part can be
    computed directly.

    The order of the pass that was read last is kept, because each batch would otherwise compute the whole order anew.
    """

    def __init__(self, indices: np.ndarray | int, seed: int, name: str) -> None:
        self.indices, self.seed, self.name = indices, seed, name
        self.size = indices if isinstance(indices, int) else len(indices)
        self._kept: tuple[int, np.ndarray] | None = None

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_kept": None}

    def take(self, start: int, count: int) -> np.ndarray:
        """Return the `count` items of the stream from position `start` on."""
        parts = []
        for number in range(start // self.size, (start + count - 1) // self.size + 1):
            first = number * self.size
            parts.append(self._part(number, max(start - first, 0), min(start + count - first, self.size)))
        chosen = np.concatenate(parts).astype(np.int64)
        return chosen if isinstance(self.indices, int) else self.indices[chosen]

    def _part(self, number: int, start: int, end: int) -> np.ndarray:
        """Return the positions, before shuffling, of items `start` to `end` - 1 of pass `number`."""
        if self._kept is None or self._kept[0] != number:
            order = np.random.default_rng(seed_of(self.seed, self.name, number)).permutation(self.size)
            self._kept = number, order.astype(np.min_scalar_type(self.size))
        return self._kept[1][start:end]


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
    """Make a sampler of all images alike or, with `singles_share`, of single-object scenes in this share of each batch
    and of other scenes. The first `single_steps` steps show only single-object scenes, if there are any."""
    singles = Stream(np.flatnonzero(is_single), seed, "singles")
    parts = [(Stream(len(is_single), seed, "all"), batch)]
    if singles_share is not None and is_single.any() and not is_single.all():
        n_singles = round(singles_share * batch)
        pairs = Stream(np.flatnonzero(~is_single), seed, "pairs")
        parts = [(singles, n_singles), (pairs, batch - n_singles)]
    return BatchSampler(parts, [(singles, batch)], single_steps if is_single.any() else 0)


def by_shares(
    strata: Mapping[str, Bool[np.ndarray, " n"]], shares: Mapping[str, float], batch: int, seed: int
) -> BatchSampler:
    """Make a sampler for a mixture of data sets; a share gives the number of items from its stratum in a batch."""
    # Whole numbers with the right sum: differences of rounded cumulative sums.
    counts = np.diff(np.round(np.cumsum([0.0, *shares.values()]) * batch).astype(int)).tolist()
    if lost := next((name for name, n in zip(shares, counts, strict=True) if shares[name] and not n), ""):
        raise UserError(
            f"{lost} has a share of {shares[lost]:.2%}, which gives it no item in a batch of {batch}; raise --batch, "
            "or leave it out"
        )
    if empty := next((name for name in shares if shares[name] and not strata[name].any()), ""):
        raise UserError(f"{empty} has a share of {shares[empty]:.2%} of each batch and no images; give it a share of 0")
    streams = [Stream(np.flatnonzero(strata[name]), seed, name) for name in shares]
    return BatchSampler(list(zip(streams, counts, strict=True)))

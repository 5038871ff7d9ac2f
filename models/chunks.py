"""Scores of all images with all texts, chunk by chunk where all at once would need too much memory.

The backward pass computes each chunk again. Scores and gradients are those of all at once up to rounding, so what fits
is still computed at once.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from menagerie.models.texts import Tensors, leaves, mapped

# Bytes that may be kept for the backward pass if all images are compared at once.
MOST_BYTES = 2 << 30
# Bytes of a chunk.
CHUNK_BYTES = 256 << 20


def fits(images: int, bytes_each: int) -> bool:
    """Whether so many images can be compared at once, if each needs `bytes_each` bytes."""
    return images * bytes_each <= MOST_BYTES


def rows_in_chunk(bytes_each: int) -> int:
    """Number of images in a chunk."""
    return max(1, CHUNK_BYTES // max(1, bytes_each))


def by_images(score: Callable[[Tensors], Tensors], images: Tensors, bytes_each: int) -> Tensors:
    """What `score` gives for images: a row for each. Their code has a row for each too, and `score` draws no random
    numbers.

    `bytes_each` is what it keeps of an image for the backward pass.
    """
    parts = list(leaves(images))
    if fits(len(parts[0]), bytes_each):
        return score(images)
    if torch.is_grad_enabled():
        score = partial(checkpoint, score, use_reentrant=False, preserve_rng_state=False)
    rows = zip(*(part.split(rows_in_chunk(bytes_each)) for part in parts), strict=True)
    return joined([score(filled(images, row)) for row in rows])


def joined(parts: Sequence[Tensors]) -> Tensors:
    """The rows of several codes as one."""
    return filled(parts[0], map(torch.cat, zip(*map(leaves, parts), strict=True)))


def filled(code: Tensors, parts: Iterable[Tensor]) -> Tensors:
    """A code whose tensors are replaced by others."""
    others = iter(parts)
    return mapped(code, lambda _: next(others))

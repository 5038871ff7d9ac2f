"""Scores of all images with all texts, chunk by chunk where all at once would need too much memory.

The backward pass computes each chunk again. Chunks change scores and gradients by rounding, so images that fit into
memory are still compared all at once.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from menagerie.models.texts import Tensors, leaves, map_tensors

# Bytes that may be kept for the backward pass if all images are compared at once.
MOST_BYTES = 2 << 30
# Bytes of a chunk.
CHUNK_BYTES = 256 << 20


def fits_in_memory(images: int, bytes_each: int) -> bool:
    """Whether this many images can be compared at once, if the backward pass needs `bytes_each` bytes of each."""
    return images * bytes_each <= MOST_BYTES


def rows_in_chunk(bytes_each: int) -> int:
    """Return the number of images in a chunk, if each takes `bytes_each` bytes."""
    return max(1, CHUNK_BYTES // max(1, bytes_each))


def by_images(score: Callable[[Tensors], Tensors], images: Tensors, bytes_each: int) -> Tensors:
    """Return `score(images)`, computed chunk by chunk if all images at once wouldn't fit.

    `images` and the result must have a row for each image. `score` must draw no random numbers, because the backward
    pass computes it again. `bytes_each` is the number of bytes that it keeps of each image for the backward pass.
    """
    parts = list(leaves(images))
    if fits_in_memory(len(parts[0]), bytes_each):
        return score(images)
    if torch.is_grad_enabled():
        score = partial(checkpoint, score, use_reentrant=False, preserve_rng_state=False)
    rows = zip(*(part.split(rows_in_chunk(bytes_each)) for part in parts), strict=True)
    return concatenate([score(replace_leaves(images, row)) for row in rows])


def concatenate(parts: Sequence[Tensors]) -> Tensors:
    """Concatenate the rows of several embeddings."""
    return replace_leaves(parts[0], map(torch.cat, zip(*map(leaves, parts), strict=True)))


def replace_leaves(embedding: Tensors, parts: Iterable[Tensor]) -> Tensors:
    """Return an embedding of the same structure, with `parts` in place of its tensors."""
    others = iter(parts)
    return map_tensors(embedding, lambda _: next(others))

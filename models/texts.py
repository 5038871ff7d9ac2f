"""Texts as scorers read them, the protocol of readers, and helpers for the nested tensors that scorers make: chunks of
images, where all at once would need too much memory.

The backward pass computes each chunk again. Chunks change scores and gradients by rounding, so images that fit into
memory are still compared all at once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.objectives import Targets

# A tensor, or named tuples of tensors and of such tuples: embeddings of images or texts.
Tensors = Any
Embedding = TypeVar("Embedding")


@dataclass(frozen=True)
class Texts:
    """Captions, each with its scene graph."""

    captions: Sequence[str]
    graphs: Sequence[SceneGraph]
    matched: int | None = None
    """Number of texts, in a training batch, that belong to images: they come first, text i + jn belongs to image i of
    n. Later texts are false captions, or phrases of captions. None if all texts belong to images."""
    targets: Targets | None = None
    """In a training batch, which texts are positives of which images, and how many texts are phrases; for readers."""


@runtime_checkable
class TextReader(Protocol):
    """Turns texts into tensors, without any weights: it runs in processes that prepare batches, so it must be
    picklable.

    A reader may have a method `cut(texts)`, which tells for each text whether it is too long (reports count these). It
    may also have attributes that decide the texts of a training batch (see `menagerie.models.training.feed`):
    `captions`, the number of captions of each image; `false_further`, the kind of false versions that all of these but
    the first get; and `phrases`, whether the phrases of first captions are added.
    """

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> Tensors:
        """Return tensors on the CPU. Random draws, which are made only in training, use `generator`."""


class RegraphedReader:
    """Reads like `reader`, but with `graphs(caption, graph)` in place of each caption's graph."""

    def __init__(self, reader: TextReader, graphs: Callable[[str, SceneGraph], SceneGraph]) -> None:
        self.reader, self.graphs = reader, graphs
        self.captions = getattr(reader, "captions", 1)
        self.phrases = getattr(reader, "phrases", False)
        self.false_further = getattr(reader, "false_further", "")

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> Tensors:
        """Read the captions with replaced graphs."""
        return self.reader(self._with_graphs(texts), generator)

    def cut(self, texts: Texts) -> list[bool] | None:
        """For each text, whether the reader cuts it; None if it can't tell."""
        return find_cut_texts(self.reader, self._with_graphs(texts))

    def _with_graphs(self, texts: Texts) -> Texts:
        return replace(texts, graphs=list(map(self.graphs, texts.captions, texts.graphs)))


def find_cut_texts(reader: TextReader, texts: Texts) -> list[bool] | None:
    """For each text, whether a reader cuts it, so that the scorer never sees its end; None if the reader can't tell."""
    cut = getattr(reader, "cut", None)
    return cut(texts) if cut else None


def map_tensors(embedding: Embedding, change: Callable[[Tensor], Tensor]) -> Embedding:
    """Apply `change` to each tensor of an embedding; the structure and non-tensors are kept."""
    if isinstance(embedding, Tensor):
        return change(embedding)
    if isinstance(embedding, tuple):
        parts = (map_tensors(part, change) for part in embedding)
        return type(embedding)(*parts) if hasattr(embedding, "_fields") else tuple(parts)
    return embedding


def leaves(embedding: Tensors) -> Iterator[Any]:
    """Yield the tensors and other leaves of an embedding, in order."""
    if isinstance(embedding, tuple):
        for part in embedding:
            yield from leaves(part)
    else:
        yield embedding


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

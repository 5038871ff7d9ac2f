"""Texts as scorers read them, the protocol of readers, and helpers for the nested tensors that scorers make."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

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

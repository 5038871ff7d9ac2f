"""Texts as scorers read them, what reads them, and the structure of what scorers make of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from menagerie.generators.captions.graph import SceneGraph

# A tensor, or named tuples of tensors and of such tuples: what scorers make of images and of texts.
Tensors = Any
Code = TypeVar("Code")


@dataclass(frozen=True)
class Texts:
    """Captions, each with its scene graph."""

    captions: Sequence[str]
    graphs: Sequence[SceneGraph]
    matched: int | None = None
    """How many of them belong to images, in a training batch: the first ones, text i + jn to image i of n. Those behind
    are false captions, which belong to none. None: all belong to some."""


@runtime_checkable
class TextReader(Protocol):
    """Texts to tensors, without any weights: it runs in the processes that prepare batches, so it must be picklable.

    A method `cut(texts)`, a bool for each text, says which are too long for it: reports count these. A number
    `captions` says how many captions of each image a training batch should have (see `menagerie.models.training.feed`).
    """

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> Tensors:
        """Tensors on the CPU; what training draws at random comes from `generator`."""


class RegraphedReader:
    """Reads as `reader` does, but of each caption the graph that `graphs` gives for it and the data's one."""

    def __init__(self, reader: TextReader, graphs: Callable[[str, SceneGraph], SceneGraph]) -> None:
        self.reader, self.graphs = reader, graphs
        self.captions = getattr(reader, "captions", 1)

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> Tensors:
        """Read the captions with their other graphs."""
        return self.reader(self._regraphed(texts), generator)

    def cut(self, texts: Texts) -> list[bool] | None:
        """Whether the reader cuts each text; None if it can't tell."""
        return cut_by(self.reader, self._regraphed(texts))

    def _regraphed(self, texts: Texts) -> Texts:
        return replace(texts, graphs=list(map(self.graphs, texts.captions, texts.graphs)))


def cut_by(reader: TextReader, texts: Texts) -> list[bool] | None:
    """Whether a reader cuts each text, whose end the scorer then never sees; None where it doesn't say so."""
    cut = getattr(reader, "cut", None)
    return cut(texts) if cut else None


def mapped(code: Code, change: Callable[[Tensor], Tensor]) -> Code:
    """A code of the same structure with each tensor changed; what is no tensor stays as it is."""
    if isinstance(code, Tensor):
        return change(code)
    if isinstance(code, tuple):
        parts = (mapped(part, change) for part in code)
        return type(code)(*parts) if hasattr(code, "_fields") else tuple(parts)
    return code


def leaves(code: Tensors) -> Iterator[Any]:
    """The tensors of a code in their order, and whatever else it is made of."""
    if isinstance(code, tuple):
        for part in code:
            yield from leaves(part)
    else:
        yield code

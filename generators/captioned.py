"""Defines what all training data have: images, each with one or several captions, their scene graphs, and records."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Int64, UInt8
from torch import Tensor
from torch.utils.data._utils.collate import default_collate_fn_map

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import seed_of
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.templates import Caption

Indices = Sequence[int] | Int64[np.ndarray, " n"]
Option = TypeVar("Option")


class Captioned(ABC):
    """Images with captions. All randomness comes from the draws: the same index and draw give the same bytes."""

    name: str
    """The name in messages."""
    complete_captions: bool = False
    """Whether the captions come from a closed world whose graphs say all, so that from its graph a text is known to be
    true of another text's image; the loss then leaves it out. Otherwise only duplicates are known."""
    names: frozenset[str] = frozenset()
    """Names of several words in complete captions that stand for one thing (`captions.relations.names_in`)."""
    has_partners: bool = False
    """Whether each image has a partner, of which its negative is true."""
    text_negatives: tuple[str, ...] = ()
    """Kinds of negatives that it gives (`hard_negatives.false_captions.TEXT_NEGATIVES`); empty: it has none."""
    strata: Mapping[str, Bool[np.ndarray, " n"]] = MappingProxyType({})
    """Named masks over all indices that a sampler may draw from apart, such as "single_object"."""
    shares: Mapping[str, float] = MappingProxyType({})
    """The share of each batch that a sampler takes from each stratum; they sum to 1. Empty: all items are drawn
    alike."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of images."""

    @abstractmethod
    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        """The images of `indices`, all of one size."""

    @abstractmethod
    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        """One caption for each index; which of several is chosen depends only on the index and its draw, a seed."""

    @abstractmethod
    def texts(self) -> Iterator[str]:
        """Every text that it can give, some of them twice: captions, negatives, and the nodes and predicates of both.

        For a vocabulary and a context length.
        """

    def several(self, indices: Indices, draws: Indices, count: int) -> list[list[Caption]]:
        """`count` captions of each index, as that many lists: the first that of `captions`, the others drawn anew."""
        others = ([seed_of(draw, "another caption", k) for draw in draws] for k in range(1, count))
        return [self.captions(indices, drawn) for drawn in (draws, *others)]

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        """For each index a caption that is false of its image, made from the caption of the same draw; None where there
        is none. `kind` is one of `text_negatives`."""
        return [None for _ in zip(indices, draws, strict=True)]

    def partner_items(self, indices: Indices) -> Int64[np.ndarray, " n"]:
        """For each index, the index of its partner among these images, of which its negative is true; -1 where there
        is none."""
        return np.full(len(indices), -1, np.int64)

    def partner_images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        """The images of the partners of `indices`, of which the negatives are true; raises where there are none."""
        raise UserError(f"{self.name} has no partner images, of which its negatives are true; take data that has")


def pick(options: Sequence[Option], draw: int | np.integer, item: object) -> Option:
    """One of `options`, which depends on the draw and the text of `item` alone."""
    return options[seed_of(draw, "caption", item) % len(options)]


def all_texts(captions: Iterable[Caption]) -> Iterator[str]:
    """The captions, their nodes and their predicates."""
    for text, graph in captions:
        yield text
        yield from graph.nodes
        yield from (edge.predicate for edge in graph.edges)


class Example(NamedTuple):
    """One image with its caption, its hard negative, and the scene graphs of both.

    Real data sets have the same form. `negative` is empty if there is none.
    """

    image: UInt8[Tensor, "3 h w"]
    caption: str
    negative: str
    graph: SceneGraph
    negative_graph: SceneGraph


def collate(examples: Sequence[Example]) -> Example:
    """A batch: images stacked (n, 3, h, w), texts and graphs as lists. A plain `DataLoader` does the same."""
    images, *rest = zip(*examples, strict=True)
    return Example(torch.stack(images), *map(list, rest))


def collate_examples(examples: Sequence[Example], *, collate_fn_map: Any = None) -> Example:
    return collate(examples)


def collate_graphs(graphs: Sequence[SceneGraph], *, collate_fn_map: Any = None) -> list[SceneGraph]:
    """Graphs as a list: torch would transpose their tuples."""
    return list(graphs)


# The table by which `torch.utils.data.default_collate` is extended (its docstring's second option).
default_collate_fn_map[Example] = collate_examples
default_collate_fn_map[SceneGraph] = collate_graphs

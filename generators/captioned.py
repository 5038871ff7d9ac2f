"""The base of all training data: images, each with one or several captions, their scene graphs, and negatives."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

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
    """Images with captions. Only draws are random: the same index and draw give the same image and captions."""

    name: str
    """Name in messages."""
    complete_captions: bool = False
    """Whether captions come from a closed world and have complete graphs. Then a graph tells whether a text is true of
    another text's image, and the loss can leave such texts out. Otherwise only duplicates are recognised."""
    names: frozenset[str] = frozenset()
    """Names of several words in complete captions, such as "sea lion" (`captions.relations.compound_names`)."""
    has_counterfactuals: bool = False
    """Whether each image has a counterfactual: the image that its negative describes."""
    text_negatives: tuple[str, ...] = ()
    """Kinds of negatives available (`storage.false_captions.TEXT_NEGATIVES`); empty if there are none."""
    strata: Mapping[str, Bool[np.ndarray, " n"]] = MappingProxyType({})
    """Named masks over all indices, such as "single_object". A sampler may draw from each of these strata."""
    shares: Mapping[str, float] = MappingProxyType({})
    """The share of each batch that a sampler takes from each stratum; they sum to 1. If empty, all are as probable."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of images."""

    @abstractmethod
    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        """The images of `indices`, all of one size."""

    @abstractmethod
    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        """Return one caption for each index. Of several the index and its draw, a seed, decide which one."""

    @abstractmethod
    def texts(self) -> Iterator[str]:
        """Yield the texts that vocabularies and context lengths are made from, possibly more than once: captions,
        negatives, and the nodes and predicates of both, but not always all that can be drawn."""

    def several(self, indices: Indices, draws: Indices, count: int) -> list[list[Caption]]:
        """Return `count` lists of one caption for each index: first the result of `captions`, then newly drawn ones."""
        others = ([seed_of(draw, "another caption", k) for draw in draws] for k in range(1, count))
        return [self.captions(indices, drawn) for drawn in (draws, *others)]

    def parts_of_captions(self, indices: Indices, draws: Indices, count: int) -> list[list[Caption]]:
        """The same with parts of captions, which have false versions (`false_of`); without such parts, `several`."""
        return self.several(indices, draws, count)

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        """Return, for each index, a caption that is false of its image, or None if there is none. It is made from the
        one that `captions` returns for the same index and draw. `kind` is one of `text_negatives`."""
        return [None for _ in zip(indices, draws, strict=True)]

    def false_of(
        self, indices: Indices, draws: Indices, captions: Sequence[Caption], kind: str
    ) -> list[Caption | None]:
        """The same, made from `captions`, which has one caption for each index, from a list of `several`."""
        return [None for _ in zip(indices, draws, strict=True)]

    def counterfactual_items(self, indices: Indices) -> Int64[np.ndarray, " n"]:
        """Return, for each index, the index of the image that its negative describes; -1 if there is none."""
        return np.full(len(indices), -1, np.int64)

    def counterfactual_images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        """Return the images that the negatives of `indices` describe. Raises if the data has none."""
        raise UserError(f"{self.name} has no images of which its hard negatives are true; take data that has them")


def pick(options: Sequence[Option], draw: int | np.integer, item: object) -> Option:
    """Choose one of `options`. The choice depends only on the draw and on `item` as text."""
    return options[seed_of(draw, "caption", item) % len(options)]


def all_texts(captions: Iterable[Caption]) -> Iterator[str]:
    """Yield the text, the nodes and the predicates of each caption."""
    for text, graph in captions:
        yield text
        yield from graph.nodes
        yield from (edge.predicate for edge in graph.edges)


class Example(NamedTuple):
    """An image of a split, with its caption, its hard negative ("" if there is none), and the graphs of both."""

    image: UInt8[Tensor, "3 h w"]
    caption: str
    negative: str
    graph: SceneGraph
    negative_graph: SceneGraph


def collate(examples: Sequence[Example]) -> Example:
    """A batch: images stacked (n, 3, h, w), texts and graphs as lists. A plain `DataLoader` does the same."""
    images, *rest = zip(*examples, strict=True)
    return Example(torch.stack(images), *map(list, rest))


# Extends `torch.utils.data.default_collate`, as its docstring describes; it would transpose the tuples of graphs.
default_collate_fn_map[Example] = lambda examples, *, collate_fn_map=None: collate(examples)
default_collate_fn_map[SceneGraph] = lambda graphs, *, collate_fn_map=None: list(graphs)

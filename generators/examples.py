"""The record of any data set: an image with its texts and graphs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.utils.data._utils.collate import default_collate_fn_map

from menagerie.generators.captions.graph import SceneGraph


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
    """`collate` as torch's table takes it."""
    return collate(examples)


def collate_graphs(graphs: Sequence[SceneGraph], *, collate_fn_map: Any = None) -> list[SceneGraph]:
    """Graphs as a list: torch would transpose their tuples."""
    return list(graphs)


# The table by which `torch.utils.data.default_collate` is extended (its docstring's second option).
default_collate_fn_map[Example] = collate_examples
default_collate_fn_map[SceneGraph] = collate_graphs

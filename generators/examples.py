"""The record of any data set: an image with its texts and graphs."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import UInt8
from torch import Tensor

from generators.captions.graph import SceneGraph


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
    """A batch for `DataLoader(..., collate_fn=collate)`: images stacked, texts and graphs as lists."""
    images, *rest = zip(*examples, strict=True)
    return Example(torch.stack(images), *map(list, rest))

"""Codes of images, a block at a time: those that scoring waits for, in its order."""

from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import UInt8
from torch import Tensor

from menagerie.models.scorer import Scorer, Tensors

BLOCK = 32  # images that are encoded at once
Block = Sequence[int]
# Blocks of numbers of images, each number in one block -> the code of each block, one after the other.
Encode = Callable[[Sequence[Block]], Iterator[Tensors]]


def encoded(
    scorer: Scorer, images: Callable[[Block], UInt8[Tensor, "n 3 h w"]], blocks: Sequence[Block]
) -> Iterator[Tensors]:
    """Every block by itself; `images` gives the pixels of some numbers, of each once."""
    for block in blocks:
        own = list(dict.fromkeys(block))
        pixels = images(own)
        yield encode(scorer, pixels if len(own) == len(block) else pixels[[own.index(number) for number in block]])


@torch.no_grad()
def encode(scorer: Scorer, pixels: UInt8[Tensor, "n 3 h w"]) -> Tensors:
    """The scorer's code of images as they are read."""
    return scorer.encode_images(scorer.pixel_scale(pixels.to(scorer.device)))

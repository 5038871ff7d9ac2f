"""Pixels as towers read them: scaled by the statistics that the tower was trained with."""

from typing import NamedTuple

import open_clip
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn


class Statistics(NamedTuple):
    """Mean and standard deviation of each colour channel, on a scale of 0 to 1."""

    mean: tuple[float, ...] = open_clip.OPENAI_DATASET_MEAN
    deviation: tuple[float, ...] = open_clip.OPENAI_DATASET_STD


def statistics_of(model: nn.Module) -> Statistics:
    """An open_clip model's own statistics (SigLIP's differ from CLIP's); OpenAI's for towers of ours."""
    own = getattr(model.visual, "preprocess_cfg", None) or {}
    return Statistics(tuple(own.get("mean", Statistics().mean)), tuple(own.get("std", Statistics().deviation)))


def normalise(pixels: UInt8[Tensor, "n 3 h w"], mean: Tensor, deviation: Tensor) -> Float[Tensor, "n 3 h w"]:
    """Bytes to floats of mean 0 and deviation 1; the statistics (3, 1, 1) lie on the same device."""
    return pixels.float().div_(255).sub_(mean).div_(deviation)


class PixelScale(nn.Module):
    """`normalise` with statistics that follow the model to its device; they are no part of its weights."""

    def __init__(self, statistics: Statistics) -> None:
        super().__init__()
        for name, values in statistics._asdict().items():
            self.register_buffer(name, torch.tensor(values)[:, None, None], persistent=False)

    def forward(self, pixels: UInt8[Tensor, "n 3 h w"]) -> Float[Tensor, "n 3 h w"]:
        """Floats that the towers read."""
        return normalise(pixels, self.mean, self.deviation)

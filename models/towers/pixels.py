"""How a tower's images are prepared: as squares, normalised with the pixel statistics of its training."""

from typing import NamedTuple

import open_clip
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError


class Statistics(NamedTuple):
    """Mean and standard deviation of each colour channel, on a scale of 0 to 1."""

    mean: tuple[float, ...] = open_clip.OPENAI_DATASET_MEAN
    deviation: tuple[float, ...] = open_clip.OPENAI_DATASET_STD


class Framing(NamedTuple):
    """How a picture of any size becomes the square that a tower reads."""

    resolution: int
    """Side of the square, in pixels."""
    squashed: bool = False
    """Whether the whole picture is squashed (SigLIP); else its central square is taken (CLIP)."""
    interpolation: str = "bicubic"
    """Name of a resampling filter of Pillow."""


def statistics_of(model: nn.Module) -> Statistics:
    """The pixel statistics of an open_clip model (SigLIP's differ from CLIP's); OpenAI's for our small towers."""
    given = getattr(model.visual, "preprocess_cfg", None) or {}
    return Statistics(tuple(given.get("mean", Statistics().mean)), tuple(given.get("std", Statistics().deviation)))


def framing_of(model: nn.Module, resolution: int) -> Framing:
    """How open_clip prepares pictures for a model; the central square for our small towers."""
    given = getattr(model.visual, "preprocess_cfg", None) or {}
    return Framing(resolution, given.get("resize_mode") == "squash", given.get("interpolation", "bicubic"))


class PixelScale(nn.Module):
    """Scales bytes to floats of mean 0 and deviation 1; its statistics move with the model, but aren't saved with its
    weights."""

    def __init__(self, statistics: Statistics, framing: Framing) -> None:
        super().__init__()
        self.framing = framing
        for name, values in statistics._asdict().items():
            self.register_buffer(name, torch.tensor(values)[:, None, None], persistent=False)

    def forward(self, pixels: UInt8[Tensor, "n 3 h w"]) -> Float[Tensor, "n 3 h w"]:
        """Floats for the towers; raises for images of another size than theirs."""
        height, width = pixels.shape[-2:]
        side = self.framing.resolution
        if (height, width) != (side, side):
            raise UserError(
                f"images of {width} x {height} pixels for a model that reads {side} x {side}; resize them, or let "
                "`load_scorer(...).score` do it"
            )
        return pixels.float().div_(255).sub_(self.mean).div_(self.deviation)

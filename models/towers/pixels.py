"""Pixels as the towers read them."""

import open_clip
import torch
from jaxtyping import Float
from torch import Tensor


def normalise(pixels: Tensor) -> Float[Tensor, "n 3 h w"]:
    """uint8 pixels (n, 3, h, w) to floats with open_clip's mean and standard deviation."""
    statistics = (open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD)
    mean, std = (torch.tensor(values, device=pixels.device)[:, None, None] for values in statistics)
    return (pixels.float() / 255 - mean) / std

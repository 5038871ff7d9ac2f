"""Random variations of training images. Nothing is mirrored or turned: left stays left."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


class Variation(NamedTuple):
    """How each of n images is varied; drawn where batches are prepared, applied where they are trained on."""

    affine: Float[Tensor, "n 2 3"]
    gain: Float[Tensor, "n 1 1 1"]


def draw_variation(n: int, generator: torch.Generator) -> Variation:
    """Zoom by up to a fifth, a shift by up to an eighth of the side, and contrast by up to 15 %."""

    def uniform(*shape: int) -> Tensor:
        return 2 * torch.rand(*shape, generator=generator) - 1

    zoom = 1.2 ** uniform(n, 1, 1)
    affine = torch.cat([zoom * torch.eye(2), 0.25 * uniform(n, 2, 1)], dim=2)
    return Variation(affine, 1 + 0.15 * uniform(n, 1, 1, 1))


def augment(pixels: Float[Tensor, "n 3 h w"], variation: Variation) -> Float[Tensor, "n 3 h w"]:
    """The images zoomed, shifted and lightened as drawn."""
    grid = F.affine_grid(variation.affine, list(pixels.shape), align_corners=False)
    return variation.gain * F.grid_sample(pixels, grid, padding_mode="reflection", align_corners=False)

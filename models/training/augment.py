"""Random variations of training images. Images are neither mirrored nor rotated: left stays left. Borders left empty by
a zoom or a shift are filled by reflection, so that an object near the border may be seen twice."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


class Variation(NamedTuple):
    """The variation of each of n images; drawn where batches are prepared, applied on the training device."""

    affine: Float[Tensor, "n 2 3"]
    gain: Float[Tensor, "n 1 1 1"]


def draw_variation(n: int, generator: torch.Generator) -> Variation:
    """Draw a zoom by up to a fifth, a shift by up to an eighth of the side, and contrast by up to 15 %."""

    def uniform(*shape: int) -> Tensor:
        return 2 * torch.rand(*shape, generator=generator) - 1

    zoom = 1.2 ** uniform(n, 1, 1)
    affine = torch.cat([zoom * torch.eye(2), 0.25 * uniform(n, 2, 1)], dim=2)
    return Variation(affine, 1 + 0.15 * uniform(n, 1, 1, 1))


def augment(pixels: Float[Tensor, "n 3 h w"], variation: Variation) -> Float[Tensor, "n 3 h w"]:
    """Apply the drawn zoom, shift and contrast to the images."""
    grid = sampling_grid(variation.affine, *pixels.shape[2:])
    return variation.gain * F.grid_sample(pixels, grid, padding_mode="reflection", align_corners=False)


def sampling_grid(affine: Float[Tensor, "n 2 3"], height: int, width: int) -> Float[Tensor, "n h w 2"]:
    """Return the same bits as `F.affine_grid` (align_corners=False) for a zoom and a shift, computed by row and column
    instead of by a matrix product for every pixel."""
    grid = affine.new_empty(len(affine), height, width, 2)
    grid[..., 0] = (affine[:, 0, :1] * centres(width, affine) + affine[:, 0, 2:])[:, None, :]
    grid[..., 1] = (affine[:, 1, 1:2] * centres(height, affine) + affine[:, 1, 2:])[:, :, None]
    return grid


def centres(side: int, like: Tensor) -> Float[Tensor, " side"]:
    """The centres of a side's pixels, on a scale from -1 to 1."""
    return torch.linspace(-1, 1, side, dtype=like.dtype, device=like.device) * (side - 1) / side

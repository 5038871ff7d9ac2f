"""Images as training sees them: floats, varied at random."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from models.towers.pixels import normalise


def prepare(
    images: UInt8[Tensor, "n 3 h w"], augment: bool, generator: torch.Generator, device: torch.device
) -> Float[Tensor, "n 3 h w"]:
    """Normalised floats on `device`, varied at random if `augment`."""
    pixels = normalise(images.to(device))
    return vary(pixels, generator) if augment else pixels


def vary(pixels: Float[Tensor, "n 3 h w"], generator: torch.Generator) -> Float[Tensor, "n 3 h w"]:
    """Zoom each image by up to a fifth, shift it by up to an eighth of its side, and scale its
    contrast by up to 15 %. Nothing is mirrored or turned: left stays left."""

    def uniform(*shape: int) -> Tensor:
        return 2 * torch.rand(*shape, generator=generator) - 1

    n = len(pixels)
    zoom = 1.2 ** uniform(n, 1, 1)
    affine = torch.cat([zoom * torch.eye(2), 0.25 * uniform(n, 2, 1)], dim=2).to(pixels.device)
    gain = (1 + 0.15 * uniform(n, 1, 1, 1)).to(pixels.device)
    grid = F.affine_grid(affine, list(pixels.shape), align_corners=False)
    return gain * F.grid_sample(pixels, grid, padding_mode="reflection", align_corners=False)

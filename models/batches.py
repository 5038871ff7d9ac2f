"""Batches as a pure function of (seed, step): a resumed run sees what an undisturbed one sees,
and two models with the same recipe see the same images in the same order."""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from generators.seeds import seed_of
from models.towers import normalise


class Stream:
    """Endless shuffled passes over some indices; any part of it can be asked for."""

    def __init__(self, indices: np.ndarray, seed: int, name: str) -> None:
        self.indices, self.seed, self.name = indices, seed, name

    def take(self, start: int, count: int) -> np.ndarray:
        """Items `start` to `start + count` of the stream."""
        size = len(self.indices)
        passes = range(start // size, (start + count - 1) // size + 1)
        orders = [np.random.default_rng(seed_of(self.seed, self.name, n)).permutation(size) for n in passes]
        offset = start - passes[0] * size
        return self.indices[np.concatenate(orders)[offset : offset + count]]


class BatchSampler:
    """Draws batches from all images alike, or lone animals and pairs in a fixed proportion; the
    first `warm_steps` batches show lone animals only."""

    def __init__(
        self, is_single: np.ndarray, batch: int, singles_share: float | None, seed: int, warm_steps: int = 0
    ) -> None:
        everything = np.arange(len(is_single))
        singles = Stream(everything[is_single], seed, "singles")
        self.warm, self.parts = [(singles, batch)], [(Stream(everything, seed, "all"), batch)]
        self.warm_steps = warm_steps if is_single.any() else 0
        if singles_share is not None and is_single.any() and not is_single.all():
            n_singles = round(singles_share * batch)
            pairs = Stream(everything[~is_single], seed, "pairs")
            self.parts = [(singles, n_singles), (pairs, batch - n_singles)]

    def indices(self, step: int) -> np.ndarray:
        """Indices of the batch of `step`."""
        parts = self.warm if step < self.warm_steps else self.parts
        return np.concatenate([stream.take(step * count, count) for stream, count in parts if count])


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

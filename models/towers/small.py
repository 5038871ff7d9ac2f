"""Small towers, trained from scratch."""

import copy
from itertools import pairwise

import open_clip
from jaxtyping import Float
from torch import Tensor, nn

from menagerie.models.towers.config import TowerConfig
from menagerie.models.towers.sizes import SMALL_TOWERS


class ConvStem(nn.Module):
    """Stride-2 convolutions down to one vector per patch, in place of open_clip's `conv1`."""

    def __init__(self, width: int, patch_size: int) -> None:
        super().__init__()
        halvings = patch_size.bit_length() - 1
        channels = [3, *(width >> (halvings - i) for i in range(1, halvings)), width]
        layers: list[nn.Module] = []
        for i, (before, after) in enumerate(pairwise(channels)):
            layers.append(nn.Conv2d(before, after, 4, 2, 1))
            if i < halvings - 1:
                # Per-image normalisation: batch statistics would let the images of a batch
                # see one another.
                layers += [nn.GroupNorm(1, after), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n width rows columns"]:
        """One vector per patch."""
        return self.layers(pixels)


def build_small(config: TowerConfig, vocab_size: int, context: int) -> open_clip.CLIP:
    """A small open_clip model from scratch that reads `context` tokens of `vocab_size` kinds."""
    cfg = copy.deepcopy(SMALL_TOWERS[config.architecture])
    cfg["vision_cfg"] |= {"image_size": config.resolution}
    cfg["text_cfg"] |= {"vocab_size": vocab_size, "context_length": context}
    model = open_clip.CLIP(**cfg)
    model.visual.conv1 = ConvStem(cfg["vision_cfg"]["width"], cfg["vision_cfg"]["patch_size"])
    return model

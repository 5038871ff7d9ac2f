"""Small towers, trained from scratch."""

import copy
from itertools import pairwise

import open_clip
from jaxtyping import Float
from torch import Tensor, nn

from models.towers.config import TowerConfig

# Small towers in open_clip's own configuration format; image size, vocabulary and context
# are filled in. They read images through a small convolutional stem, which trains far faster
# than one linear patch projection (Xiao et al. 2021, "Early convolutions help transformers
# see better"). Add one by adding an entry.
SMALL_TOWERS: dict[str, dict] = {
    "nano": {
        "embed_dim": 32,
        "vision_cfg": {"width": 32, "layers": 1, "head_width": 16, "patch_size": 8},
        "text_cfg": {"width": 32, "layers": 1, "heads": 2},
    },
    "micro": {
        "embed_dim": 64,
        "vision_cfg": {"width": 64, "layers": 1, "head_width": 32, "patch_size": 8},
        "text_cfg": {"width": 64, "layers": 1, "heads": 2},
    },
    "mini": {
        "embed_dim": 64,
        "vision_cfg": {"width": 64, "layers": 2, "head_width": 32, "patch_size": 8},
        "text_cfg": {"width": 64, "layers": 2, "heads": 2},
    },
    "broad": {
        "embed_dim": 96,
        "vision_cfg": {"width": 96, "layers": 1, "head_width": 32, "patch_size": 8},
        "text_cfg": {"width": 96, "layers": 1, "heads": 3},
    },
    "small": {
        "embed_dim": 128,
        "vision_cfg": {"width": 128, "layers": 4, "head_width": 32, "patch_size": 8},
        "text_cfg": {"width": 128, "layers": 3, "heads": 4},
    },
}


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

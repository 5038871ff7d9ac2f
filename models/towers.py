"""Image and text towers from open_clip: small ones from scratch, any of its architectures,
pretrained where its hub or a local file gives the weights."""

import contextlib
import copy
import logging
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import open_clip
import torch
from jaxtyping import Float
from torch import Tensor, nn

from envs.errors import UserError, choose
from models.configs import TowerConfig
from models.text import OpenCLIPTokenizer, Tokenizer, WordTokenizer

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


def known_architectures() -> list[str]:
    """Every name that `TowerConfig.architecture` takes."""
    return [*SMALL_TOWERS, *open_clip.list_models()]


def check_towers(config: TowerConfig) -> None:
    """Raise, before anything is built, on an architecture, resolution or weights that can't be had."""
    choose("architecture", config.architecture, known_architectures())
    if config.architecture in SMALL_TOWERS:
        if config.pretrained:
            raise UserError(f"there are no pretrained weights for {config.architecture!r}; choose an open_clip model")
        patch = SMALL_TOWERS[config.architecture]["vision_cfg"]["patch_size"]
        if config.resolution < patch or config.resolution % patch:
            raise UserError(
                f"resolution {config.resolution} is not a multiple of {config.architecture}'s patch {patch}"
            )
    elif config.pretrained and not Path(config.pretrained).is_file():
        choose("pretrained weights", config.pretrained, open_clip.list_pretrained_tags_by_model(config.architecture))


def build_towers(config: TowerConfig, words: tuple[str, ...], context: int) -> tuple[nn.Module, Tokenizer]:
    """open_clip model and tokenizer. `words` is the vocabulary of a small tower; the
    pretrained ones bring their own, and their own context length."""
    check_towers(config)
    if config.architecture in SMALL_TOWERS:
        return build_small(config, words, context)
    with quiet(logging.ERROR):  # else it warns that a model from scratch has no weights
        model = open_clip.create_model(
            config.architecture,
            pretrained=config.pretrained or None,
            force_image_size=config.resolution,
            force_context_length=None if config.pretrained else context,
        )
    return model, OpenCLIPTokenizer(config.architecture)


@contextlib.contextmanager
def quiet(level: int) -> Iterator[None]:
    """Keep the root logger below `level` silent."""
    logger = logging.getLogger()
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)


def build_small(config: TowerConfig, words: tuple[str, ...], context: int) -> tuple[open_clip.CLIP, WordTokenizer]:
    """A small open_clip model from scratch with a word-level vocabulary."""
    tokenizer = WordTokenizer(words)
    cfg = copy.deepcopy(SMALL_TOWERS[config.architecture])
    cfg["vision_cfg"] |= {"image_size": config.resolution}
    cfg["text_cfg"] |= {"vocab_size": tokenizer.vocab_size, "context_length": context}
    model = open_clip.CLIP(**cfg)
    model.visual.conv1 = ConvStem(cfg["vision_cfg"]["width"], cfg["vision_cfg"]["patch_size"])
    return model, tokenizer


def patch_tokens(model: nn.Module, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n patches width"]:
    """The image tower's patch-level encoding, before pooling and projection."""
    model.visual.output_tokens = True
    try:
        return model.visual(pixels)[1]
    finally:
        model.visual.output_tokens = False


def require_vit(model: nn.Module, architecture: str) -> None:
    """Raise unless the model is a plain CLIP on a ViT of open_clip, whose patches can be had."""
    from open_clip.transformer import VisionTransformer

    if not isinstance(getattr(model, "visual", None), VisionTransformer) or not hasattr(model, "text_projection"):
        raise UserError(
            f"oc-clip needs patch tokens, which {architecture!r} does not give; choose a ViT such as ViT-B-16"
        )


def normalise(pixels: Tensor) -> Float[Tensor, "n 3 h w"]:
    """uint8 pixels (n, 3, h, w) to floats with open_clip's mean and standard deviation."""
    statistics = (open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD)
    mean, std = (torch.tensor(values, device=pixels.device)[:, None, None] for values in statistics)
    return (pixels.float() / 255 - mean) / std

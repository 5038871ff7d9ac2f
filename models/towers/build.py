"""Image and text towers from open_clip: small ones from scratch, any of its architectures,
pretrained where its hub or a local file gives the weights."""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import open_clip
from jaxtyping import Float
from torch import Tensor, nn

from envs.common.errors import UserError, choose
from models.towers.config import TowerConfig
from models.towers.small import SMALL_TOWERS, build_small
from models.towers.tokenizers import OpenCLIPTokenizer, Tokenizer


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

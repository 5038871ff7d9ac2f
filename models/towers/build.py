"""Image and text towers from open_clip: small ones from scratch, any of its architectures,
pretrained where its hub or a local file gives the weights."""

from pathlib import Path
from typing import NamedTuple

import open_clip
import timm.models.vision_transformer as timm_vit
import torch
from jaxtyping import Float
from open_clip.timm_model import TimmModel
from open_clip.transformer import VisionTransformer
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.progress import quiet
from menagerie.models.towers import paired
from menagerie.models.towers.config import TextSpace, TowerConfig, file_and_tag
from menagerie.models.towers.pixels import Framing, Statistics, framing_of, statistics_of
from menagerie.models.towers.preparation import preparation_of
from menagerie.models.towers.sizes import SMALL_TOWERS
from menagerie.models.towers.small import build_small
from menagerie.models.towers.tokenizers import Tokenizer, tokenizer_of
from menagerie.models.towers.weight_file import check_weight_file, without_advice


class Towers(NamedTuple):
    """An open_clip model, and how it reads texts and pixels."""

    model: nn.Module
    tokenizer: Tokenizer
    context: int
    """Tokens of a text; pretrained towers bring their own."""
    pixels: Statistics
    framing: Framing
    architecture: str

    def require_patches(self, scorer: str) -> None:
        """Raise unless the image tower is a plain ViT of open_clip, all of whose tokens can be had."""
        check_patches(self.model, self.architecture, scorer)

    def require_tokens(self, scorer: str) -> None:
        """Raise unless all tokens of both towers can be had, and where a text ends."""
        self.require_patches(scorer)
        check_ends(self.model, self.architecture, scorer)

    def patch_sizes(self, scorer: str) -> tuple[int, int]:
        """Width and number of the patches of `patch_tokens`; raises unless the image tower is a plain ViT, of open_clip
        or of timm."""
        visual = getattr(self.model, "visual", None)
        if is_timm_vit(visual) and hasattr(self.model, "text_projection"):
            return visual.trunk.embed_dim, visual.trunk.patch_embed.num_patches
        self.require_patches(scorer)
        return visual.class_embedding.numel(), visual.positional_embedding.shape[0] - 1


def is_timm_vit(visual: nn.Module | None) -> bool:
    """Whether an image tower is a plain ViT of timm."""
    return isinstance(visual, TimmModel) and isinstance(visual.trunk, timm_vit.VisionTransformer)


def check_patches(model: nn.Module, architecture: str, scorer: str) -> None:
    """Raise for a model of which `scorer` can't have the tokens: its image tower must be a plain ViT of open_clip."""
    if not isinstance(getattr(model, "visual", None), VisionTransformer) or not hasattr(model, "text_projection"):
        raise UserError(
            f"{scorer} needs patch tokens, which {architecture!r} does not give; choose a ViT such as ViT-B-16"
        )


def check_ends(model: nn.Module, architecture: str, scorer: str) -> None:
    """Raise for a text tower whose last token need not be the end of the text: nothing says where that is."""
    pool = getattr(model, "text_pool_type", "argmax")
    if pool not in ("argmax", "eos"):
        raise UserError(
            f"{scorer} needs to know where a text ends, which {architecture!r} doesn't say (it pools {pool!r}); choose "
            "a ViT such as ViT-B-16"
        )


def known_architectures() -> list[str]:
    """Every name that `TowerConfig.architecture` takes."""
    return [*SMALL_TOWERS, *open_clip.list_models()]


def check_towers(config: TowerConfig) -> None:
    """Raise, before anything is built, on an architecture, resolution or weights that can't be had."""
    choose("architecture", config.architecture, known_architectures())
    tokenizer_of(config, ())
    if config.architecture in SMALL_TOWERS:
        if config.pretrained:
            raise UserError(f"there are no pretrained weights for {config.architecture!r}; choose an open_clip model")
        patch = SMALL_TOWERS[config.architecture]["vision_cfg"]["patch_size"]
        if config.resolution < patch or config.resolution % patch:
            raise UserError(
                f"resolution {config.resolution} is not a multiple of {config.architecture}'s patch {patch}"
            )
    elif config.pretrained and config.load:
        check_weights(config)


def check_weights(config: TowerConfig) -> None:
    """Raise on weights that can't be had or read, and on a file whose preparation nobody knows."""
    weights, _ = file_and_tag(config.pretrained)
    if config.architecture in paired.TEXTS_OF:
        paired.check_weights(config.architecture, config.pretrained)
    elif Path(weights).is_file():
        check_weight_file(Path(weights))
    else:
        choose("pretrained weights", config.pretrained, open_clip.list_pretrained_tags_by_model(config.architecture))
    preparation_of(config)


def build_towers(config: TowerConfig, texts: TextSpace) -> Towers:
    """The towers of a configuration, for the given texts; pretrained ones have their own context length."""
    check_towers(config)
    tokenizer = tokenizer_of(config, texts.words)
    if config.architecture in SMALL_TOWERS:
        model: nn.Module = build_small(config, tokenizer.vocab_size, texts.context)
    else:
        model = build_open_clip(config, texts)
    framing = framing_of(model, config.resolution)
    return Towers(model, tokenizer, model.context_length, statistics_of(model), framing, config.architecture)


def build_open_clip(config: TowerConfig, texts: TextSpace) -> nn.Module:
    """A model of open_clip's, from scratch or pretrained.

    open_clip only warns where weights were trained with another activation than the architecture has
    ("ViT-B-16/openai"), and forgets their pixel statistics where it doesn't load them; both are set here.
    """
    pair, preparation = config.architecture in paired.TEXTS_OF, preparation_of(config)
    loaded = bool(config.pretrained and config.load)
    try:
        with quiet():  # else it warns that a model from scratch has no weights
            model = open_clip.create_model(
                config.architecture,
                pretrained=file_and_tag(config.pretrained)[0] if loaded and not pair else None,
                force_quick_gelu=preparation.quick_gelu,
                force_preprocess_cfg=preparation.pictures,
                force_image_size=config.resolution,
                force_context_length=None if config.pretrained else texts.context,
            )
            if pair and loaded:
                paired.load_pair(model, config.architecture, config.pretrained, config.resolution)
            return model
    except UserError:
        raise
    except Exception as error:  # no network, a foreign file, no transformers: each raises its own
        weights = f" with the weights {config.pretrained!r}" if config.pretrained else ""
        raise UserError(f"{config.architecture}{weights} can't be built: {without_advice(error)}") from error


def patch_tokens(model: nn.Module, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n patches width"]:
    """The image tower's patch-level encoding, before pooling and projection."""
    if is_timm_vit(model.visual):
        trunk = model.visual.trunk
        return trunk.forward_features(pixels)[:, trunk.num_prefix_tokens :]
    model.visual.output_tokens = True
    try:
        return model.visual(pixels)[1]
    finally:
        model.visual.output_tokens = False


def unpooled_tokens(visual: VisionTransformer, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n tokens width"]:
    """What the last block of the image tower gives, the CLS token first, before any LayerNorm or pooling."""
    layers = visual.forward_intermediates(
        pixels,
        indices=1,
        normalize_intermediates=False,
        intermediates_only=True,
        output_fmt="NLC",
        output_extra_tokens=True,
    )
    return torch.cat([layers["image_intermediates_prefix"][0], layers["image_intermediates"][0]], dim=1)

"""Image and text towers: small ones from scratch, or open_clip's, with weights from its hub or a file."""

import copy
from itertools import pairwise
from pathlib import Path

import open_clip
import torch
from jaxtyping import Float
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.progress import silence_loggers
from menagerie.models.towers import paired
from menagerie.models.towers.attention import with_fewer_copies
from menagerie.models.towers.config import SMALL_TOWERS, TextSpace, TowerConfig, file_and_tag
from menagerie.models.towers.preparation import framing_of, preparation_of, statistics_of
from menagerie.models.towers.tokenizers import tokenizer_of
from menagerie.models.towers.towers import ImageTower, TextTower, Towers
from menagerie.models.towers.weight_file import check_weight_file, image_side, readable_weights, without_advice


def open_clip_architectures() -> list[str]:
    """The names of open_clip's architectures."""
    return open_clip.list_models()


def at_own_sizes(architecture: str, pretrained: str) -> tuple[TowerConfig, TextSpace]:
    """An architecture of open_clip with the resolution of a file of weights, otherwise its default one, and its default
    context length; raises if it doesn't read square images."""
    config = open_clip.get_model_config(architecture)
    side = config["vision_cfg"].get("image_size", 224)
    if not isinstance(side, int):
        raise UserError(f"{architecture} reads images of {side} pixels; this takes models that read squares")
    file = Path(file_and_tag(pretrained)[0])
    if file.is_file() and architecture not in paired.TEXTS_OF:
        side = image_side(file, side)
    return TowerConfig(architecture, pretrained, side), TextSpace((), config["text_cfg"].get("context_length", 77))


def check_towers(config: TowerConfig) -> None:
    """Raise, before anything is built, for an architecture, tokenizer, resolution or weights that can't be used."""
    choose("architecture", config.architecture, [*SMALL_TOWERS, *open_clip_architectures()])
    tokenizer_of(config, ())
    if config.architecture in SMALL_TOWERS:
        if config.pretrained:
            raise UserError(f"there are no pretrained weights for {config.architecture!r}; choose an open_clip model")
        vision = SMALL_TOWERS[config.architecture]["vision_cfg"]
        step, what = (vision["columns"], "columns") if "columns" in vision else (vision["patch_size"], "patch")
        if config.resolution < step or config.resolution % step:
            raise UserError(
                f"resolution {config.resolution} is not a multiple of {config.architecture}'s {what} {step}"
            )
    elif config.pretrained and config.load:
        check_pretrained_weights(config)


def check_pretrained_weights(config: TowerConfig) -> None:
    """Raise for weights that aren't available or can't be read, and for a file without known preparation."""
    weights, _ = file_and_tag(config.pretrained)
    if config.architecture in paired.TEXTS_OF:
        paired.check_pair_weights(config.architecture, config.pretrained)
    elif Path(weights).is_file():
        check_weight_file(Path(weights))
    else:
        choose("pretrained weights", config.pretrained, open_clip.list_pretrained_tags_by_model(config.architecture))
    preparation_of(config)


def build_towers(config: TowerConfig, texts: TextSpace) -> Towers:
    """Build the towers of a configuration, for the given texts; pretrained ones have their own context length."""
    check_towers(config)
    tokenizer = tokenizer_of(config, texts.words)
    if config.architecture in SMALL_TOWERS:
        model: nn.Module = build_small(config, tokenizer.vocab_size, texts.context)
    else:
        model = build_open_clip(config, texts)
    with_fewer_copies(model)
    return Towers(
        model,
        ImageTower(model),
        TextTower(model),
        tokenizer,
        model.context_length,
        statistics_of(model),
        framing_of(model, config.resolution),
        config.architecture,
    )


def build_open_clip(config: TowerConfig, texts: TextSpace) -> nn.Module:
    """Build a model of open_clip, from scratch or pretrained.

    open_clip only warns if weights were trained with another activation than the architecture has ("ViT-B-16/openai"),
    and doesn't set their pixel statistics unless it loads them itself; both are set here.
    """
    pair, preparation = config.architecture in paired.TEXTS_OF, preparation_of(config)
    loaded = bool(config.pretrained and config.load)
    try:
        given = file_and_tag(config.pretrained)[0] if loaded and not pair else ""
        with silence_loggers(), readable_weights(given) as weights:  # it warns about models without weights
            own = timm_side(config.architecture, weights)
            model = open_clip.create_model(
                config.architecture,
                pretrained=None if own else weights or None,
                force_quick_gelu=preparation.quick_gelu,
                force_preprocess_cfg=preparation.pictures,
                force_image_size=own or config.resolution,
                force_context_length=None if config.pretrained else texts.context,
                pretrained_text=not own,
            )
            if own:
                open_clip.load_checkpoint(model, weights)
                model.visual.set_input_size(config.resolution)
            if pair and loaded:
                paired.load_pair(model, config.architecture, config.pretrained, config.resolution)
            return model
    except UserError:
        raise
    except Exception as error:  # no network, another kind of file, no transformers: each raises its own type
        weights = f" with the weights {config.pretrained!r}" if config.pretrained else ""
        raise UserError(f"{config.architecture}{weights} can't be built: {without_advice(error)}") from error


def timm_side(architecture: str, weights: str) -> int:
    """The image size of a file of weights with an image tower of timm, if it isn't the architecture's: open_clip loads
    such weights before it sets the size, so they don't fit. 0 otherwise."""
    vision = open_clip.get_model_config(architecture)["vision_cfg"]
    if "timm_model_name" not in vision or not Path(weights).is_file():
        return 0
    own = image_side(Path(weights), vision["image_size"])
    return own if own != vision["image_size"] else 0


def build_small(config: TowerConfig, vocab_size: int, context: int) -> open_clip.CLIP:
    """Build a small open_clip model from scratch for texts of `context` tokens and a vocabulary of `vocab_size`."""
    cfg = copy.deepcopy(SMALL_TOWERS[config.architecture])
    vision = cfg["vision_cfg"]
    columns, positions = vision.pop("columns", 0), vision.pop("positions", "learned")
    vision |= {"image_size": config.resolution}
    if columns:
        vision["patch_size"] = (config.resolution, config.resolution // columns)
    cfg["text_cfg"] |= {"vocab_size": vocab_size, "context_length": context}
    model = open_clip.CLIP(**cfg)
    if not columns:
        model.visual.conv1 = ConvStem(vision["width"], vision["patch_size"])
    if positions != "learned":
        fix_positions(model.visual.positional_embedding, positions)
    return model


@torch.no_grad()
def fix_positions(embedding: nn.Parameter, kind: str) -> None:
    """Replace learned position embeddings by fixed ones: zeros, or the sines and cosines of Vaswani et al. 2017,
    section 3.5. CLS, the first token, gets those of position 0."""
    embedding.requires_grad_(False).zero_()
    if kind == "sinusoidal":
        tokens, width = embedding.shape
        angles = torch.arange(tokens)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
        embedding[:, 0::2], embedding[:, 1::2] = angles.sin(), angles.cos()


class ConvStem(nn.Module):
    """Convolutions of stride 2 that replace open_clip's `conv1` and give one vector per patch."""

    def __init__(self, width: int, patch_size: int) -> None:
        super().__init__()
        halvings = patch_size.bit_length() - 1
        channels = [3, *(width >> (halvings - i) for i in range(1, halvings)), width]
        layers: list[nn.Module] = []
        for i, (before, after) in enumerate(pairwise(channels)):
            layers.append(nn.Conv2d(before, after, 4, 2, 1))
            if i < halvings - 1:
                # Normalise per image: with batch statistics the images of a batch would influence one another.
                layers += [nn.GroupNorm(1, after), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n width rows columns"]:
        """Return one vector per patch."""
        return self.layers(pixels)

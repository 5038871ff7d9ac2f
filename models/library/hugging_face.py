"""CLIP and SigLIP of Hugging Face's transformers, from a folder or the hub, as a scorer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from PIL import Image
from torch import Tensor, nn

from envs.common.errors import UserError
from generators.captions.graph import SceneGraph
from models.scorer import Scorer, Tensors, drop_own_temperature
from models.towers.config import TextSpace, TowerConfig
from models.towers.pixels import Framing, PixelScale, Statistics
from models.towers.weight_file import without_advice

# Kinds of models that have one vector an image and one a text. SigLIP reads its padding, CLIP masks it.
MASKED = {"clip": True, "siglip": False}


class TextInput(NamedTuple):
    """What the text tower reads."""

    ids: Int64[Tensor, "m context"]
    mask: Int64[Tensor, "m context"] | None


@dataclass(frozen=True)
class HuggingFaceReader:
    """Captions to token ids of fixed length; longer ones are cut. The graphs are not read."""

    tokenizer: Any = field(repr=False)
    context: int = 77
    masked: bool = True

    def __call__(
        self,
        captions: Sequence[str],
        graphs: Sequence[SceneGraph],
        generator: torch.Generator | None = None,
        own: int | None = None,
    ) -> TextInput:
        """Token ids of every caption."""
        read = self.tokenizer(
            list(captions), padding="max_length", truncation=True, max_length=self.context, return_tensors="pt"
        )
        return TextInput(read["input_ids"], read["attention_mask"] if self.masked else None)


@dataclass(frozen=True)
class HuggingFaceConfig:
    """Nothing is specific to it."""


class HuggingFaceScorer(Scorer):
    """Unit vectors of images and captions, compared by their cosine."""

    config_class = HuggingFaceConfig

    def __init__(self, name: str) -> None:
        parts = load_parts(name)
        framing = framing_of(parts.pictures)
        context = parts.model.config.text_config.max_position_embeddings
        super().__init__(TowerConfig("", name, framing.resolution), TextSpace((), context))
        self.config, self.model = HuggingFaceConfig(), drop_own_temperature(parts.model)
        self.take_temperature()
        self.reader = HuggingFaceReader(parts.tokenizer, context, MASKED[parts.model.config.model_type])
        statistics = Statistics(tuple(parts.pictures["image_mean"]), tuple(parts.pictures["image_std"]))
        self.pixel_scale = PixelScale(statistics, framing)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Unit vectors."""
        return F.normalize(vectors(self.model.get_image_features(pixel_values=pixels)), dim=-1)

    def encode_texts(self, texts: TextInput) -> Float[Tensor, "m d"]:
        """Unit vectors of the captions."""
        features = self.model.get_text_features(input_ids=texts.ids, attention_mask=texts.mask)
        return F.normalize(vectors(features), dim=-1)

    def similarity(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
        """Cosine."""
        return images @ texts.T

    def backbones(self) -> dict[str, list[nn.Parameter]]:
        """The two towers."""
        named = list(self.model.named_parameters())
        return {
            "vision": [parameter for name, parameter in named if name.startswith(("vision", "visual"))],
            "text": [parameter for name, parameter in named if name.startswith("text")],
        }


class Parts(NamedTuple):
    """What a folder of transformers holds."""

    model: nn.Module
    tokenizer: Any
    pictures: dict[str, Any]
    """The settings of its image processor."""


def load_parts(name: str) -> Parts:
    """Model, tokenizer and image processor of a folder or a name on the hub; no code that lies there is run."""
    try:
        from transformers import AutoConfig, AutoImageProcessor, AutoModel, AutoTokenizer
    except ImportError as error:
        raise UserError(f"{name} needs transformers: pip install 'binding-menagerie[huggingface]'") from error
    try:
        kind = AutoConfig.from_pretrained(name, trust_remote_code=False).model_type
        if kind not in MASKED:
            raise UserError(f"{name} is a {kind!r} of Hugging Face; this reads {' and '.join(MASKED)}")
        loaders = (AutoModel, AutoTokenizer, AutoImageProcessor)
        model, tokenizer, pictures = (loader.from_pretrained(name, trust_remote_code=False) for loader in loaders)
    except UserError:
        raise
    except Exception as error:  # a missing file, another version, no network: each raises its own
        raise UserError(f"{name} can't be loaded by transformers: {without_advice(error)}") from error
    return Parts(model.float(), tokenizer, pictures.to_dict())


def framing_of(pictures: dict[str, Any]) -> Framing:
    """How an image processor frames pictures."""
    size, crop = pictures["size"], pictures.get("crop_size") or {}
    cropped = bool(pictures.get("do_center_crop"))
    sides = {crop["height"], crop["width"]} if cropped else {size.get("height"), size.get("width")}
    if len(sides) != 1 or None in sides or (cropped and size.get("shortest_edge") not in (None, *sides)):
        raise UserError(f"an image processor with size {size} and crop {crop} gives no square that this can make")
    resampling = pictures.get("resample")  # 0 is the nearest pixel's
    interpolation = Image.Resampling(Image.Resampling.BICUBIC if resampling is None else resampling).name.lower()
    return Framing(int(sides.pop()), squashed=not cropped or "shortest_edge" not in size, interpolation=interpolation)


def vectors(features: Tensors) -> Float[Tensor, "n d"]:
    """The vectors that a model gives: as they are, or (transformers 5) the pooled output of a record."""
    return features if isinstance(features, Tensor) else features.pooler_output

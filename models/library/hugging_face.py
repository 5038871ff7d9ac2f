"""CLIP and SigLIP of Hugging Face's transformers, from a folder or the hub, as a scorer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.progress import quiet
from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.library.image_processor import read_pictures
from menagerie.models.library.processor_files import GEMMA, GEMMA_WORDS
from menagerie.models.scorer import Scorer, Tensors, drop_own_temperature
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.pixels import PixelScale
from menagerie.models.towers.weight_file import without_advice

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
    lower: bool = False
    """Whether texts are made lower case."""

    def __call__(
        self,
        captions: Sequence[str],
        graphs: Sequence[SceneGraph],
        generator: torch.Generator | None = None,
        own: int | None = None,
    ) -> TextInput:
        """Token ids of every caption."""
        options = {"padding": "max_length", "truncation": True, "max_length": self.context, "return_tensors": "pt"}
        read = self.tokenizer(self.texts(captions), **options)
        return TextInput(read["input_ids"], read["attention_mask"] if self.masked else None)

    def cut(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> list[bool]:
        """Whether each caption is longer than the context."""
        return [len(ids) > self.context for ids in self.tokenizer(self.texts(captions), verbose=False)["input_ids"]]

    def texts(self, captions: Sequence[str]) -> list[str]:
        """The captions as the tokenizer is given them."""
        return [caption.lower() if self.lower else caption for caption in captions]


@dataclass(frozen=True)
class HuggingFaceConfig:
    """Nothing is specific to it."""


class HuggingFaceScorer(Scorer):
    """Unit vectors of images and captions, compared by their cosine."""

    config_class = HuggingFaceConfig

    def __init__(self, name: str) -> None:
        parts = load_parts(name)
        framing, statistics = read_pictures(name, parts.pictures, parts.model.config.vision_config.image_size)
        context = parts.model.config.text_config.max_position_embeddings
        super().__init__(TowerConfig("", name, framing.resolution), TextSpace((), context))
        self.config, self.model = HuggingFaceConfig(), drop_own_temperature(parts.model)
        self.take_temperature()
        masked, lower = MASKED[parts.model.config.model_type], reads_lower_case(parts.model, parts.tokenizer)
        self.reader = HuggingFaceReader(parts.tokenizer, context, masked, lower)
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


@quiet()
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


def reads_lower_case(model: nn.Module, tokenizer: Any) -> bool:
    """Whether texts are to be made lower case: SigLIP2 was trained on such (Tschannen et al. 2025), and has Gemma's
    tokenizer, which keeps capitals. A tokenizer's own `do_lower_case: false` is obeyed."""
    gemma = type(tokenizer).__name__.startswith(GEMMA)
    gemma |= model.config.text_config.vocab_size == GEMMA_WORDS
    return model.config.model_type == "siglip" and gemma and tokenizer.init_kwargs.get("do_lower_case", True)


def vectors(features: Tensors) -> Float[Tensor, "n d"]:
    """The vectors that a model gives: as they are, or (transformers 5) the pooled output of a record."""
    return features if isinstance(features, Tensor) else features.pooler_output

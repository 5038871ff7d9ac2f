"""CLIP and SigLIP of Hugging Face's transformers, from a folder or the hub, as towers.

Settings of their image processor are followed; one that prepares a picture in another way raises an error.
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from PIL import Image
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.generators.sources.image_files import square
from menagerie.models.texts import Tensors, Texts
from menagerie.models.towers.preparation import Framing, PixelScale, Statistics
from menagerie.models.towers.towers import ImageTower, TextTower, Towers
from menagerie.models.towers.weight_file import check_loaded, loading_from_transformers

# Model types with one vector an image and one a text. SigLIP attends to padding, CLIP masks it.
MASKED = {"clip": True, "siglip": False}
GEMMA_WORDS = 256_000  # size of SigLIP2's vocabulary
GEMMA = ("Gemma", "Siglip2")
BYTE = 255
MOST_APART = 0.02  # of the range of pixels, by which libraries may differ in resizing


class TextInput(NamedTuple):
    """The input of the text tower."""

    ids: Int64[Tensor, "m context"]
    mask: Int64[Tensor, "m context"] | None


@dataclass(frozen=True)
class HuggingFaceReader:
    """Reads captions as token ids of fixed length, cutting longer ones, and ignores graphs."""

    tokenizer: Any = field(repr=False)
    context: int = 77
    masked: bool = True
    lower: bool = False
    """Whether to convert texts to lower case."""

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> TextInput:
        """Return the token ids of all captions, with the attention mask if the model masks padding."""
        options = {"padding": "max_length", "truncation": True, "max_length": self.context, "return_tensors": "pt"}
        read = self.tokenizer(self._prepare(texts), **options)
        return TextInput(read["input_ids"], read["attention_mask"] if self.masked else None)

    def cut(self, texts: Texts) -> list[bool]:
        """For each caption, whether it is longer than the context."""
        return [len(ids) > self.context for ids in self.tokenizer(self._prepare(texts), verbose=False)["input_ids"]]

    def _prepare(self, texts: Texts) -> list[str]:
        """The captions in the form that the tokenizer gets."""
        return [caption.lower() if self.lower else caption for caption in texts.captions]


class HuggingFaceImages(ImageTower):
    """The image tower of a Hugging Face model; it gives only vectors, no tokens."""

    def pool(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """The vector of each image, as pooled and projected by the model."""
        return output_vectors(self.model.get_image_features(pixel_values=pixels))

    def parameters(self) -> list[nn.Parameter]:
        """All parameters of the tower."""
        return [parameter for name, parameter in self.model.named_parameters() if name.startswith(("vision", "visual"))]


class HuggingFaceTexts(TextTower):
    """The text tower of a Hugging Face model."""

    def pool(self, texts: TextInput) -> Float[Tensor, "m d"]:
        """The vector of each text, as pooled and projected by the model."""
        return output_vectors(self.model.get_text_features(input_ids=texts.ids, attention_mask=texts.mask))

    def parameters(self) -> list[nn.Parameter]:
        """All parameters of the tower."""
        return [parameter for name, parameter in self.model.named_parameters() if name.startswith("text")]


def load_hugging_face(name: str) -> tuple[Towers, HuggingFaceReader]:
    """Load the towers from a folder or a name on the hub, and the reader of their texts."""
    model, tokenizer, pictures = load_parts(name)
    framing, statistics = read_pictures(name, pictures, model.config.vision_config.image_size)
    context = model.config.text_config.max_position_embeddings
    reader = HuggingFaceReader(tokenizer, context, MASKED[model.config.model_type], reads_lower_case(model, tokenizer))
    images, texts = HuggingFaceImages(model), HuggingFaceTexts(model)
    return Towers(model, images, texts, None, context, statistics, framing, name), reader


def load_parts(name: str) -> tuple[nn.Module, Any, Any]:
    """Load model, tokenizer and image processor from a folder or a name on the hub; no code found there is run."""
    with loading_from_transformers(name) as library:
        kind = library.AutoConfig.from_pretrained(name, trust_remote_code=False).model_type
        if kind not in MASKED:
            raise UserError(f"{name} is a {kind!r} of Hugging Face; this reads {' and '.join(MASKED)}")
        model, read = library.AutoModel.from_pretrained(name, trust_remote_code=False, output_loading_info=True)
        check_loaded(name, read["missing_keys"], read["unexpected_keys"])
        loaders = (library.AutoTokenizer, library.AutoImageProcessor)
        tokenizer, pictures = (loader.from_pretrained(name, trust_remote_code=False) for loader in loaders)
    return model.float(), tokenizer, pictures


def reads_lower_case(model: nn.Module, tokenizer: Any) -> bool:
    """Whether to convert texts to lower case. SigLIP2 was trained so (Tschannen et al. 2025), but its Gemma tokenizer
    keeps capitals. A tokenizer's explicit `do_lower_case: false` is followed."""
    gemma = type(tokenizer).__name__.startswith(GEMMA)
    gemma |= model.config.text_config.vocab_size == GEMMA_WORDS
    return model.config.model_type == "siglip" and gemma and tokenizer.init_kwargs.get("do_lower_case", True)


def output_vectors(features: Tensors) -> Float[Tensor, "n d"]:
    """The vectors in a model's output: the output itself, or (transformers 5) its pooled part."""
    return features if isinstance(features, Tensor) else features.pooler_output


def read_pictures(name: str, processor: Any, side: int) -> tuple[Framing, Statistics]:
    """How the image processor of the model `name` prepares pictures, as far as its settings say; raises unless a
    picture that is prepared so is what the processor itself makes of it.

    The processor multiplies bytes by `rescale_factor`, then subtracts the mean and divides by the deviation; the result
    has these for pixels from 0 to 1.
    """
    settings = processor.to_dict()
    factor = settings.get("rescale_factor", 1 / BYTE) if settings.get("do_rescale", True) else 1
    given: list[Any] = [0.0, 1.0]
    if settings.get("do_normalize", True):
        given = [settings.get("image_mean"), settings.get("image_std")]
    filters = {each.value: each.name.lower() for each in Image.Resampling}
    try:
        resample = filters[settings.get("resample", Image.Resampling.BICUBIC)]
        framing = Framing(side, not settings.get("do_center_crop"), resample)
        scale = 1.0 if factor == 1 / BYTE else factor * BYTE
        values = [each if isinstance(each, list | tuple) else [each] * 3 for each in given]
        statistics = Statistics(*(tuple(channel / scale for channel in each) for each in values))
        apart = preparations_differ(processor, framing, statistics)
    except Exception as error:  # settings may be anything, and so may what the processor says of them
        raise UserError(f"{name}: its image processor's settings can't be followed ({error}): {settings}") from error
    if not apart <= MOST_APART:
        raise UserError(f"{name}: its image processor makes no squares of {side} px in a way known here: {settings}")
    return framing, statistics


def preparations_differ(processor: Any, framing: Framing, statistics: Statistics) -> float:
    """By how much a smooth picture, as an image processor prepares it, differs from ours, on the scale of pixels from 0
    to 1; NaN for another shape."""
    side, noise = framing.resolution, np.random.default_rng(0).integers(0, 256, (6, 4, 3), np.uint8)
    picture = Image.fromarray(noise).resize((2 * side, 3 * side), Image.Resampling.BICUBIC)
    theirs = processor(picture, return_tensors="pt")["pixel_values"]
    ours = PixelScale(statistics, framing)(torch.from_numpy(square(picture, *framing)).permute(2, 0, 1)[None])
    if ours.shape != theirs.shape:
        return math.nan
    return ((ours - theirs).abs() * ours.new_tensor(statistics.deviation)[:, None, None]).max().item()

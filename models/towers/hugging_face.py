"""CLIP and SigLIP of Hugging Face's transformers, from a folder or the hub, as towers.

Each setting of their image processor is followed; a setting that can't be followed raises an error that names it.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int64
from PIL import Image
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.progress import silence_loggers
from menagerie.models.texts import Tensors, Texts
from menagerie.models.towers.pixels import Framing, Statistics
from menagerie.models.towers.towers import ImageTower, TextTower, Towers
from menagerie.models.towers.weight_file import check_loaded, without_advice

# Model types with one vector an image and one a text. SigLIP attends to padding, CLIP masks it.
MASKED = {"clip": True, "siglip": False}
GEMMA_WORDS = 256_000  # size of SigLIP2's vocabulary
GEMMA = ("Gemma", "Siglip2")
# Image processors with these steps: resize, crop, rescale, normalise. Later versions append Fast or Pil to the name.
KIND = re.compile(r"(CLIP|Siglip|ViT)(ImageProcessor|FeatureExtractor)(Fast|Pil)?")
# `do_convert_rgb` has no effect here: pictures are always converted to RGB; transformers raises for others without it.
STEPS = ("do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb")
BYTE = 255


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


@silence_loggers()
def load_parts(name: str) -> tuple[nn.Module, Any, dict[str, Any]]:
    """Load model, tokenizer and the settings of the image processor from a folder or a name on the hub; no code found
    there is run."""
    try:
        from transformers import AutoConfig, AutoImageProcessor, AutoModel, AutoTokenizer
    except ImportError as error:
        raise UserError(f"{name} needs transformers: pip install 'binding-menagerie[huggingface]'") from error
    try:
        kind = AutoConfig.from_pretrained(name, trust_remote_code=False).model_type
        if kind not in MASKED:
            raise UserError(f"{name} is a {kind!r} of Hugging Face; this reads {' and '.join(MASKED)}")
        model, read = AutoModel.from_pretrained(name, trust_remote_code=False, output_loading_info=True)
        check_loaded(name, read["missing_keys"], read["unexpected_keys"])
        loaders = (AutoTokenizer, AutoImageProcessor)
        tokenizer, pictures = (loader.from_pretrained(name, trust_remote_code=False) for loader in loaders)
    except UserError:
        raise
    except Exception as error:  # a missing file, another version, no network: each raises its own type
        raise UserError(f"{name} can't be loaded by transformers: {without_advice(error)}") from error
    return model.float(), tokenizer, pictures.to_dict()


def reads_lower_case(model: nn.Module, tokenizer: Any) -> bool:
    """Whether to convert texts to lower case. SigLIP2 was trained so (Tschannen et al. 2025), but its Gemma tokenizer
    keeps capitals. A tokenizer's explicit `do_lower_case: false` is followed."""
    gemma = type(tokenizer).__name__.startswith(GEMMA)
    gemma |= model.config.text_config.vocab_size == GEMMA_WORDS
    return model.config.model_type == "siglip" and gemma and tokenizer.init_kwargs.get("do_lower_case", True)


def output_vectors(features: Tensors) -> Float[Tensor, "n d"]:
    """The vectors in a model's output: the output itself, or (transformers 5) its pooled part."""
    return features if isinstance(features, Tensor) else features.pooler_output


def read_pictures(name: str, settings: Mapping[str, Any], side: int) -> tuple[Framing, Statistics]:
    """Return how the image processor of the model `name` prepares pictures; raise for a setting that can't be followed,
    and if squares aren't `side` px wide.

    The processor multiplies bytes by `rescale_factor`, then subtracts the mean and divides by the deviation; the result
    has these for pixels from 0 to 1.
    """
    framing = processor_framing(name, settings)
    if framing.resolution != side:
        raise UserError(f"{name}: its image processor makes squares of {framing.resolution} px, its model reads {side}")
    factor = settings.get("rescale_factor", 1 / BYTE) if settings.get("do_rescale", True) else 1
    given = [0.0, 1.0]
    if settings.get("do_normalize", True):
        given = [settings.get("image_mean"), settings.get("image_std")]
    values = [list(each) if isinstance(each, list | tuple) else [each] * 3 for each in given]
    for setting, numbers in zip(("rescale_factor", "image_mean", "image_std"), ([factor] * 3, *values), strict=True):
        finite = len(numbers) == 3 and all(map(is_finite_number, numbers))
        right = finite and (setting == "image_mean" or 0 not in numbers)
        check_setting(name, setting, settings.get(setting), right, "that normalises nothing")
    scale = 1.0 if factor == 1 / BYTE else factor * BYTE
    return framing, Statistics(*(tuple(channel / scale for channel in each) for each in values))


def processor_framing(name: str, settings: Mapping[str, Any]) -> Framing:
    """How an image processor crops and scales pictures; raises unless it makes a square in known steps."""
    kind = settings.get("image_processor_type", settings.get("feature_extractor_type", "CLIPImageProcessor"))
    known = KIND.fullmatch(str(kind)) is not None
    check_setting(name, "image_processor_type", kind, known, "this reads those of CLIP, SigLIP and ViT")
    for step, on in settings.items():
        unknown = step.startswith("do_") and on and step not in STEPS
        check_setting(name, step, on, not unknown, "this step isn't known here")
    resized = settings.get("do_resize", True)
    check_setting(name, "do_resize", resized, resized, "pictures are resized to what the model reads")
    size, crop = dict(settings.get("size") or {}), dict(settings.get("crop_size") or {})
    cropped, squashed = bool(settings.get("do_center_crop")), size.keys() == {"height", "width"}
    sides = [*size.values(), *((crop.get("height"), crop.get("width")) if cropped else ())]
    square = squashed or (cropped and size.keys() == {"shortest_edge"})
    right = square and all(is_finite_number(side) and side == sides[0] == int(side) for side in sides)
    setting = f"{size} and crop_size = {crop}" if cropped else f"{size} without a crop"
    check_setting(name, "size", setting, right, "that gives no square in one step")
    filters = {each.value: each.name.lower() for each in Image.Resampling}
    number = settings.get("resample", Image.Resampling.BICUBIC)
    check_setting(name, "resample", number, number in filters, "that is no filter of Pillow's")
    return Framing(int(sides[0]), squashed, filters[number])


def check_setting(name: str, field: str, value: object, right: object, why: str) -> None:
    """Raise for a setting that can't be followed."""
    if not right:
        raise UserError(f"{name}: its image processor says {field} = {value!r}; {why}")


def is_finite_number(value: object) -> bool:
    """Whether a setting is a finite number; Python's JSON also has NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

"""The settings of a Hugging Face image processor: each is obeyed, or refused by its name."""

import math
import re
from collections.abc import Mapping
from typing import Any

from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.models.towers.pixels import Framing, Statistics

# Kinds whose steps are these: resize, crop, rescale, normalise. Later versions say Fast or Pil behind the name.
KIND = re.compile(r"(CLIP|Siglip|ViT)(ImageProcessor|FeatureExtractor)(Fast|Pil)?")
# `do_convert_rgb` changes nothing here: pictures that aren't RGB are made so, and without it transformers raises.
STEPS = ("do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb")
BYTE = 255


def read_pictures(name: str, settings: Mapping[str, Any], side: int) -> tuple[Framing, Statistics]:
    """How the image processor of the model `name`, which reads squares of `side` pixels, prepares pictures."""
    check_known(name, settings)
    framing = framing_of(name, settings)
    if framing.resolution != side:
        raise UserError(f"{name}: its image processor makes squares of {framing.resolution} px, its model reads {side}")
    return framing, statistics_of(name, settings)


def check_known(name: str, settings: Mapping[str, Any]) -> None:
    """Raise for another kind of processor, and for a step that this one doesn't take."""
    kind = settings.get("image_processor_type", settings.get("feature_extractor_type", "CLIPImageProcessor"))
    if not KIND.fullmatch(str(kind)):
        raise UserError(f"{name} has the image processor {kind}; this reads those of CLIP, SigLIP and ViT")
    if not settings.get("do_resize", True):
        raise refused(name, "do_resize", settings["do_resize"], "pictures are resized to what the model reads")
    for step in (step for step, on in settings.items() if step.startswith("do_") and on and step not in STEPS):
        raise refused(name, step, settings[step], "this step isn't known here")


def refused(name: str, field: str, value: object, why: str) -> UserError:
    """The error of a setting that can't be obeyed."""
    return UserError(f"{name}: its image processor says {field} = {value!r}; {why}")


def framing_of(name: str, settings: Mapping[str, Any]) -> Framing:
    """How an image processor frames pictures; a size and a crop that give no square raise."""
    size, crop = dict(settings.get("size") or {}), dict(settings.get("crop_size") or {})
    cropped = bool(settings.get("do_center_crop"))
    sides = {size.get("shortest_edge")} if size.keys() == {"shortest_edge"} and cropped else set(size.values())
    if cropped:
        sides |= {crop.get("height"), crop.get("width")}
    squashed = size.keys() == {"height", "width"}
    if len(sides) != 1 or None in sides or not (squashed or (cropped and size.keys() == {"shortest_edge"})):
        told = f"{size} and crop_size = {crop}" if cropped else f"{size} without a crop"
        raise refused(name, "size", told, "that gives no square in one step")
    side = sides.pop()
    if not number(side) or side != int(side):
        raise refused(name, "size", side, "that is no number of pixels")
    return Framing(int(side), squashed, resampling(name, settings))


def resampling(name: str, settings: Mapping[str, Any]) -> str:
    """Pillow's filter, by its number; bicubic where it is left out."""
    number = settings.get("resample", Image.Resampling.BICUBIC)
    try:
        return Image.Resampling(int(number)).name.lower()
    except (ValueError, TypeError, OverflowError):
        raise refused(name, "resample", number, "that is no filter of Pillow's") from None


def statistics_of(name: str, settings: Mapping[str, Any]) -> Statistics:
    """Mean and deviation on a scale of 0 to 1, with which `normalise` gives what the processor's steps give.

    These multiply bytes by `rescale_factor`, then take the mean away and divide by the deviation.
    """
    factor = settings.get("rescale_factor", 1 / BYTE) if settings.get("do_rescale", True) else 1
    given = [settings.get(field) for field in ("image_mean", "image_std")]
    if not settings.get("do_normalize", True):
        given = [[0.0] * 3, [1.0] * 3]
    values = [list(each) if isinstance(each, list | tuple) else [each] * 3 for each in given]
    for field, value in zip(("rescale_factor", "image_mean", "image_std"), (factor, *values), strict=True):
        check_numbers(name, field, value)
    scale = 1.0 if factor == 1 / BYTE else factor * BYTE
    return Statistics(*(tuple(channel / scale for channel in each) for each in values))


def check_numbers(name: str, field: str, value: object) -> None:
    """Raise for what are no numbers, one a channel, or for one by which can't be divided."""
    numbers = value if isinstance(value, list) else [value] * 3
    right = len(numbers) == 3 and all(map(number, numbers))
    if not right or (field != "image_mean" and 0 in numbers):
        raise refused(name, field, value, "that normalises nothing")


def number(value: object) -> bool:
    """Whether a setting is a finite number; JSON of Python's also has NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

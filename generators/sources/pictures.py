"""Turns pictures into the squares that towers read."""

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from menagerie.envs.core.pictures import check_size


def square(
    picture: Image.Image, resolution: int, squashed: bool = False, interpolation: str = "bicubic"
) -> UInt8[np.ndarray, "r r 3"]:
    """An RGB picture as the square that a tower reads: the whole picture if `squashed`, else its central square, after
    scaling its shorter side to `resolution` pixels. `interpolation` names one of Pillow's filters."""
    resample = getattr(Image.Resampling, interpolation.upper(), Image.Resampling.BICUBIC)
    if squashed:
        return np.array(picture.resize((resolution, resolution), resample))
    shorter = min(picture.size)
    width, height = (resolution * side // shorter for side in picture.size)
    check_size(width, height)  # of a strip
    resized = picture.resize((width, height), resample)
    left, top = round((width - resolution) / 2), round((height - resolution) / 2)
    return np.array(resized.crop((left, top, left + resolution, top + resolution)))


def cut(picture: Image.Image, left: int, top: int, width: int, height: int) -> Image.Image:
    """The part of a picture inside a box, which may be long and thin; where the box extends beyond the picture, it is
    black. Raises for a box without pixels or with too many."""
    if width < 1 or height < 1:
        raise ValueError(f"its box has {width} x {height} pixels")
    check_size(width, height)
    return picture.crop((left, top, left + width, top + height))

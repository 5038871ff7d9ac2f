"""Pictures from strangers, decoded safely, and made into the squares that towers read."""

from io import BytesIO
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

from menagerie.envs.core.reading import check_regular

FORMATS = ("JPEG", "PNG", "WEBP")
LARGEST_FILE = 64 << 20  # bytes
MOST_PIXELS = 64 << 20
MOST_ELONGATED = 20  # longer side by shorter side


def open_picture(path: Path | BytesIO) -> Image.Image:
    """An image file, or its bytes, upright, in RGB; what is foreign, damaged or too large raises whatever its decoder
    does."""
    size = path.getbuffer().nbytes if isinstance(path, BytesIO) else check_regular(path)
    if size > LARGEST_FILE:
        raise ValueError(f"it has more than {LARGEST_FILE >> 20} MB")
    with Image.open(path, formats=FORMATS) as picture:
        return upright(picture)


def upright(picture: Image.Image) -> Image.Image:
    """A checked picture in RGB, turned as its EXIF orientation says: however it came here, it is read one way."""
    check_picture(picture)
    return ImageOps.exif_transpose(picture).convert("RGB")


def square(
    picture: Image.Image, resolution: int, squashed: bool = False, interpolation: str = "bicubic"
) -> UInt8[np.ndarray, "r r 3"]:
    """An RGB picture as a tower reads it: all of it `squashed`, or its centre; by one of Pillow's filters."""
    resample = getattr(Image.Resampling, interpolation.upper(), Image.Resampling.BICUBIC)
    if squashed:
        return np.array(picture.resize((resolution, resolution), resample))
    return central_square(picture, resolution, resample)


def cut(picture: Image.Image, left: int, top: int, width: int, height: int) -> Image.Image:
    """The part of a picture in a box, as Pillow's `crop`: black where the box leaves it. A box may be a strip; one
    without pixels, or with too many, raises."""
    if width < 1 or height < 1:
        raise ValueError(f"its box has {width} x {height} pixels")
    check_size(width, height)
    return picture.crop((left, top, left + width, top + height))


def central_square(
    picture: Image.Image, resolution: int, resample: Image.Resampling = Image.Resampling.BICUBIC
) -> UInt8[np.ndarray, "r r 3"]:
    """The centre of an RGB picture whose shorter side becomes `resolution`."""
    shorter = min(picture.size)
    width, height = (resolution * side // shorter for side in picture.size)
    check_size(width, height)  # of a strip
    resized = picture.resize((width, height), resample)
    left, top = round((width - resolution) / 2), round((height - resolution) / 2)
    return np.array(resized.crop((left, top, left + resolution, top + resolution)))


def check_picture(picture: Image.Image) -> None:
    """Raise on a picture that takes too much memory, or whose colours would be lost; reads its header only."""
    width, height = picture.size
    check_size(width, height)
    if max(width, height) > MOST_ELONGATED * min(width, height):
        raise ValueError(f"it has {width} x {height} pixels, too long for a square")
    if picture.mode.startswith(("I", "F")):
        raise ValueError(f"it has more than 8 bits a channel (mode {picture.mode})")


def check_size(width: int, height: int) -> None:
    """Raise for so many pixels that a picture of them takes too much memory."""
    if width * height > MOST_PIXELS:
        raise ValueError(f"it has {width} x {height} pixels, more than {MOST_PIXELS >> 20} million")

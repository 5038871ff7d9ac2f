"""Decodes pictures of unknown origin safely, and turns them into the squares that towers read."""

from io import BytesIO
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from menagerie.envs.core.pictures import open_image, orientation_of
from menagerie.envs.core.reading import check_regular

FORMATS = ("JPEG", "PNG", "WEBP")
LARGEST_FILE = 64 << 20  # bytes
MOST_PIXELS = 64 << 20
MOST_ELONGATED = 20  # longer side by shorter side
TURN = Image.Transpose
# What makes a picture upright, by its orientation in EXIF.
TURNS = {
    **{2: TURN.FLIP_LEFT_RIGHT, 3: TURN.ROTATE_180, 4: TURN.FLIP_TOP_BOTTOM, 5: TURN.TRANSPOSE},
    **{6: TURN.ROTATE_270, 7: TURN.TRANSVERSE, 8: TURN.ROTATE_90},
}


def open_picture(path: Path | BytesIO) -> Image.Image:
    """Open an image file, or its bytes, upright and in RGB. Raises for another format, a damaged file, and a picture
    that is too large."""
    size = path.getbuffer().nbytes if isinstance(path, BytesIO) else check_regular(path)
    if size > LARGEST_FILE:
        raise ValueError(f"it has more than {LARGEST_FILE >> 20} MB")
    with open_image(path, FORMATS) as picture:
        return upright(picture)


def upright(picture: Image.Image) -> Image.Image:
    """Check a picture, rotate or mirror it as its EXIF orientation says, if that can be read, and convert it to RGB."""
    check_picture(picture)
    picture.load()  # PNGs may have their EXIF behind the pixels
    turn = TURNS.get(orientation_of(picture))
    made = (picture if turn is None else picture.transpose(turn)).convert("RGB")
    made.info.clear()  # or what reads it again would turn it again
    return made


def square(
    picture: Image.Image, resolution: int, squashed: bool = False, interpolation: str = "bicubic"
) -> UInt8[np.ndarray, "r r 3"]:
    """An RGB picture as the square that a tower reads: the whole picture if `squashed`, else its centre.
    `interpolation` names one of Pillow's filters."""
    resample = getattr(Image.Resampling, interpolation.upper(), Image.Resampling.BICUBIC)
    if squashed:
        return np.array(picture.resize((resolution, resolution), resample))
    return central_square(picture, resolution, resample)


def cut(picture: Image.Image, left: int, top: int, width: int, height: int) -> Image.Image:
    """The part of a picture inside a box, which may be long and thin; where the box extends beyond the picture, it is
    black. Raises for a box without pixels or with too many."""
    if width < 1 or height < 1:
        raise ValueError(f"its box has {width} x {height} pixels")
    check_size(width, height)
    return picture.crop((left, top, left + width, top + height))


def central_square(
    picture: Image.Image, resolution: int, resample: Image.Resampling = Image.Resampling.BICUBIC
) -> UInt8[np.ndarray, "r r 3"]:
    """The central square of an RGB picture, after scaling its shorter side to `resolution` pixels."""
    shorter = min(picture.size)
    width, height = (resolution * side // shorter for side in picture.size)
    check_size(width, height)  # of a strip
    resized = picture.resize((width, height), resample)
    left, top = round((width - resolution) / 2), round((height - resolution) / 2)
    return np.array(resized.crop((left, top, left + resolution, top + resolution)))


def check_picture(picture: Image.Image) -> None:
    """Raise for a picture that takes too much memory, or whose colours would be lost. Only its header is read."""
    width, height = picture.size
    check_size(width, height)
    if max(width, height) > MOST_ELONGATED * min(width, height):
        raise ValueError(f"it has {width} x {height} pixels, too long for a square")
    if picture.mode.startswith(("I", "F")):
        raise ValueError(f"it has more than 8 bits a channel (mode {picture.mode})")


def check_size(width: int, height: int) -> None:
    """Raise if a picture of this many pixels takes too much memory."""
    if width * height > MOST_PIXELS:
        raise ValueError(f"it has {width} x {height} pixels, more than {MOST_PIXELS >> 20} million")

"""Opens pictures of others and turns them upright. Their format and size are checked before any pixel is unpacked."""

from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageOps, PngImagePlugin, UnidentifiedImageError

from menagerie.envs.core.reading import check_accessible, check_regular

LARGEST_FILE = 64 << 20  # bytes
MOST_PIXELS = 64 << 20
MOST_OF_A_TEXT = 64 << 20  # bytes

# Pillow refuses PNGs that have a compressed text or a colour profile above 1 MB, which painting programs write.
PngImagePlugin.MAX_TEXT_CHUNK = MOST_OF_A_TEXT


class Limits(NamedTuple):
    """The formats and sizes that a picture may have."""

    formats: tuple[str, ...] | None = None
    """Pillow's names; None for all that Pillow reads."""
    sides: tuple[int, int] = (1, MOST_PIXELS)
    """Least and greatest side in pixels."""
    elongated: float = float("inf")
    """Greatest longer side by shorter side."""


PHOTOGRAPH = Limits(("JPEG", "PNG", "WEBP"), elongated=20)


class UnfitPicture(ValueError):
    """Raised for a picture that isn't allowed."""


def picture_error(error: Exception) -> str:
    """Why a picture can't be used: decoders raise exceptions of many types, which are named."""
    return str(error) if isinstance(error, UnfitPicture) else f"{type(error).__name__}: {error!s:.200}"


def open_picture(file: Path | bytes, limits: Limits = PHOTOGRAPH) -> Image.Image:
    """Open a picture file, or its bytes; only its header is read. Raises `UnfitPicture` for one that isn't allowed or
    has more than 8 bits a channel, and whatever decoders raise for a damaged one."""
    if (len(file) if isinstance(file, bytes) else check_regular(file)) > LARGEST_FILE:
        raise UnfitPicture(f"it has more than {LARGEST_FILE >> 20} MB")
    try:
        picture = Image.open(BytesIO(file) if isinstance(file, bytes) else file, formats=limits.formats)
    except UnidentifiedImageError as error:
        known = "picture" if limits.formats is None else f"{', '.join(limits.formats[:-1])} or {limits.formats[-1]}"
        raise UnfitPicture(f"it is no {known}") from error
    except OSError as error:
        if isinstance(file, Path):
            check_accessible(file, error)
        raise
    check_picture(picture, limits)
    return picture


def check_picture(picture: Image.Image, limits: Limits = PHOTOGRAPH) -> None:
    """Raise for a picture that takes too much memory, is too small or long, or whose colours would be lost."""
    width, height = picture.size
    check_size(width, height)
    if min(width, height) < limits.sides[0] or max(width, height) > limits.sides[1]:
        raise UnfitPicture(
            f"it has {width} x {height} pixels; it must have {limits.sides[0]} to {limits.sides[1]} a side"
        )
    if max(width, height) > limits.elongated * min(width, height):
        raise UnfitPicture(f"it has {width} x {height} pixels, too long for a square")
    if picture.mode.startswith(("I", "F")):
        raise UnfitPicture(f"it has more than 8 bits a channel (mode {picture.mode}); save it with 8")


def check_size(width: int, height: int) -> None:
    """Raise if a picture of this many pixels takes too much memory."""
    if width * height > MOST_PIXELS:
        raise UnfitPicture(f"it has {width} x {height} pixels, more than {MOST_PIXELS >> 20} million")


ORIENTATION = 0x0112  # EXIF's tag


def is_turned(picture: Image.Image) -> bool:
    """Whether the EXIF of a loaded picture says that viewers turn it; damaged EXIF says nothing."""
    try:
        return picture.getexif().get(ORIENTATION, 1) in range(2, 9)
    except Exception:  # each fault of EXIF raises its own type
        return False


def turn_upright(picture: Image.Image, mode: str = "RGB") -> Image.Image:
    """Turn a picture as its EXIF orientation says, if that can be read, and convert it to Pillow's `mode`."""
    picture.load()  # PNGs may have their EXIF behind the pixels
    try:
        turned = ImageOps.exif_transpose(picture)
    except Exception:  # of damaged EXIF, each fault raises its own type; the pixels are another part of the file
        turned = picture
    made = turned.convert(mode)
    made.info.clear()  # or what reads it again would turn it again
    return made


def read_upright(file: Path | bytes) -> Image.Image:
    """A photograph, upright and in RGB. Raises as `open_picture` does."""
    with open_picture(file) as picture:
        return turn_upright(picture)


def read_array(content: bytes) -> Image.Image:
    """The picture in the bytes of a NumPy file (.npy) with a byte for each channel, blue, green and red in this order,
    as OpenCV has them and EqBen's files. Raises as `open_picture` does."""
    pixels = np.load(BytesIO(content), allow_pickle=False)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise UnfitPicture(f"it is an array of {pixels.dtype}, {pixels.shape}, not of bytes, height x width x 3")
    check_size(*pixels.shape[:2])
    return Image.fromarray(np.ascontiguousarray(pixels[:, :, ::-1]))

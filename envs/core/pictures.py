"""Opens pictures with Pillow, and reads what their EXIF says, if it can be read."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image, PngImagePlugin

MOST_OF_A_TEXT = 64 << 20  # bytes
ORIENTATION, UPRIGHT = 0x0112, 1  # of EXIF

# Pillow refuses PNGs that have a compressed text or a colour profile above 1 MB, which painting programs write.
PngImagePlugin.MAX_TEXT_CHUNK = MOST_OF_A_TEXT


def open_image(file: Path | BytesIO, formats: Sequence[str] | None = None) -> Image.Image:
    """Open a picture in one of Pillow's `formats`, by default any. Only its header is read."""
    return Image.open(file, formats=formats)


def orientation_of(picture: Image.Image) -> int:
    """EXIF's number for how a picture is turned in its file, 1 to 8; `UPRIGHT` if its EXIF says nothing or can't be
    read."""
    try:
        found = picture.getexif().get(ORIENTATION, UPRIGHT)
    except Exception:  # of damaged EXIF, each fault raises its own type; the pixels are another part of the file
        return UPRIGHT
    return found if found in range(1, 9) else UPRIGHT

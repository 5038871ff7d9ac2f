"""A world's pictures are drawn as their pixels lie; one that is to be turned first, as cameras write them, is refused.

To turn it here would draw other images under the name that a world's store has already.
"""

from collections.abc import Iterable
from pathlib import Path

from menagerie.envs.core.errors import UserError

ORIENTATION, UPRIGHT = 0x0112, 1  # of EXIF


def check_upright(paths: Iterable[Path]) -> None:
    """Raise for a picture that viewers show turned or mirrored; what is no picture is left to its reader."""
    from PIL import Image

    for path in paths:
        try:
            with Image.open(path) as picture:
                orientation = picture.getexif().get(ORIENTATION, UPRIGHT)
        except Exception:  # whatever decoders say of what they can't read
            continue
        if orientation != UPRIGHT:
            raise UserError(
                f"{path} lies turned in its file (EXIF orientation {orientation}), and would be drawn so; save it "
                "upright, without that mark"
            )

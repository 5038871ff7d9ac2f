"""A user's own cut-outs: a folder of pictures that are named after what they show."""

import re
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.litter import is_litter
from menagerie.envs.custom.photo_sources import Stamp
from menagerie.envs.stamps.backgrounds import words

ENDINGS = (".png", ".webp", ".tif", ".tiff", ".gif")
LEAST = 2  # different names


def own_stamps(folder: Path) -> list[Stamp]:
    """The cut-outs in a folder: `lion.png`, `lion-2.png` and `lion/anything.png` are photographs of a lion."""
    if not folder.is_dir():
        raise UserError(f"--cutouts {folder} is no folder; give one with pictures such as lion.png and lion-2.png")
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file()):
        if is_litter(path.relative_to(folder)):
            continue
        inside = path.relative_to(folder)
        given = inside.parts[0] if len(inside.parts) > 1 else re.sub(r"[-_ ]*\d+$", "", path.stem)
        if not words(given):
            raise UserError(f"{path}: {given!r} is no name for captions; rename it in letters, as snow_leopard-2.png")
        found.append(Stamp(words(given), path, True, inside.as_posix()))
    if len({stamp.name for stamp in found}) < LEAST:
        raise UserError(f"--cutouts {folder} has pictures of {len({s.name for s in found})} things; it needs {LEAST}")
    return found

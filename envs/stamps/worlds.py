"""World files of photographs, and the copies of the pictures that they name."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file, write_text
from menagerie.envs.custom.photo_sources import NAME, Stamp
from menagerie.envs.custom.upright import check_upright
from menagerie.envs.photographs.cutout import Cutout
from menagerie.envs.photographs.picture import read_photograph

HEADER = f"""# Written by `menagerie photos`. The pictures in cutouts/ are of Debian's {NAME}, under its licence
# (GPL-2, see /usr/share/doc/{NAME}/copyright of the package): they are no part of this project.
"""
CUTOUTS, BACKGROUNDS = "cutouts", "backgrounds"  # folders beside a world file


def drawable(stamps: Sequence[Stamp], resolution: int) -> tuple[list[Stamp], dict[Stamp, str]]:
    """The stamps that can be drawn at a resolution, and why the others can't."""
    usable, refused = [], {}
    for stamp in stamps:
        try:
            check_upright([stamp.path])
            photograph = read_photograph(stamp.path, stamp.path.read_bytes())
        except UserError as error:
            refused[stamp] = str(error)
            continue
        needed = Cutout((photograph,), size=1.4).pixels_at(resolution)
        if max(photograph.size) < needed:
            refused[stamp] = f"{max(photograph.size)} pixels, fewer than {needed:.0f}: {stamp.path}"
        else:
            usable.append(stamp)
    return usable, refused


def write_world(
    path: Path,
    stamps: Sequence[Stamp],
    scenery: Mapping[str, Sequence[Path]],
    groups: Mapping[str, Sequence[str]],
    natural: bool,
) -> None:
    """Write a world file, and copies of all pictures that it names in folders beside it."""
    pictures: dict[str, dict[str, Path]] = {}
    for stamp in stamps:
        pictures.setdefault(stamp.name, {})[f"{CUTOUTS}/{stamp.relative.replace('/', '-')}"] = stamp.path
    lines = [HEADER, f"animals = {json.dumps(sorted(pictures))}"]
    lines += [f"backgrounds = {json.dumps(sorted(scenery))}"] if scenery else []
    if groups:
        lines += ["", "[groups]", *(f"{name} = {json.dumps(list(its))}" for name, its in groups.items())]
    for name, copies in sorted(pictures.items()):
        lines += ["", f'[animal."{name}"]', f"cutouts = {json.dumps(copied(path.parent, copies))}"]
        lines += ['texture = "own"'] if natural else []
    for name, paths in sorted(scenery.items()):
        start = f"{BACKGROUNDS}/{name.replace(' ', '_')}"
        copies = {f"{start}-{number}{its.suffix.lower()}": its for number, its in enumerate(paths, 1)}
        lines += ["", f'[background."{name}"]', f"image = {json.dumps(copied(path.parent, copies))}"]
    write_text(path, "\n".join(lines) + "\n")


def copied(folder: Path, copies: Mapping[str, Path]) -> list[str]:
    """Copy each picture to its new place in `folder`; returns those places."""
    for place, path in copies.items():
        with whole_file(folder / place) as temporary:
            temporary.write_bytes(path.read_bytes())
    return list(copies)

"""Photographs of scenery in a folder, by the names that captions give them."""

from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.litter import is_litter
from menagerie.envs.custom.ingredients import MOST_PICTURES
from menagerie.envs.custom.upright import check_upright
from menagerie.envs.drawing.picture_file import read_picture
from menagerie.envs.world import NAME

ENDINGS = (".png", ".jpg", ".jpeg", ".webp")


def background_pictures(folder: Path) -> dict[str, list[Path]]:
    """Pictures by background: a folder's are one, and so is each picture directly in `folder` whose name is words.

    Of one background at most `MOST_PICTURES` are used, the first by name; the others are reported, and those that lie
    turned in their files.
    """
    if not folder.is_dir():
        raise UserError(f"--backgrounds {folder} is no folder; give one with photographs (.png, .jpg, .webp)")
    named: dict[str, list[Path]] = {}
    for path in sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file()):
        if is_litter(path.relative_to(folder)):
            continue
        try:
            check_upright([path])
        except UserError as error:  # as phones write them: one such doesn't end the command
            print(f"left out: {error}")
            continue
        inside = path.relative_to(folder).parts
        name = words(inside[0] if len(inside) > 1 else path.stem) or words(folder.resolve().name) or "scenery"
        named.setdefault(name, []).append(path)
    if not named:
        raise UserError(f"--backgrounds {folder} has no photographs ({', '.join(ENDINGS)}) that can be drawn")
    for name, pictures in named.items():
        if more := pictures[MOST_PICTURES:]:
            print(f"left out: {len(more)} pictures of {name!r}, which has {MOST_PICTURES}; move them to other folders")
    used = {name: pictures[:MOST_PICTURES] for name, pictures in named.items()}
    for pictures in used.values():
        for path in pictures:
            read_picture(path)  # raises for what can't be drawn
    return used


def words(name: str) -> str:
    """A file's or a folder's name as lower-case words; empty where it isn't made of letters."""
    spaced = name.lower().replace("_", " ").replace("-", " ")
    return spaced if NAME.fullmatch(spaced) else ""

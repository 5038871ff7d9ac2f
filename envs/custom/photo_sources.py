"""Photographs for `menagerie photos`: from a Debian package, whose text files name them, or from a user's folders."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import files_below, is_litter
from menagerie.envs.custom.ingredients import MOST_PICTURES
from menagerie.envs.drawing.picture_file import Turned, read_picture
from menagerie.envs.world import NAME

CUTOUT_ENDINGS = (".png", ".webp", ".tif", ".tiff", ".gif")
ENDINGS = (".png", ".jpg", ".jpeg", ".webp")  # of backgrounds
LEAST = 2  # different names that a folder of cut-outs must have
PACKAGE = "tuxpaint-stamps-default"
PLACES = ("", "stamps", "tuxpaint/stamps", "share/tuxpaint/stamps", "usr/share/tuxpaint/stamps")
ANIMALS = "animals"
# Folders of pictures that aren't photographs of one object: drawings, toys in the shape of something else, signs.
LEFT_OUT = ("cartoon", "toys", "symbols", "flags", "roadsigns")
DRAWN = ("animals/mammals/hedgehog.png",)  # a drawing among photographs
# Marks in a picture's `.dat` file that tell a drawing for Tux Paint to colour.
COLORED_IN = ("colorable",)
# Matches "A sea lion.", "A peacock (a male peafowl).", "A spiny lobster, from the Hawaiian islands."
SENTENCE = re.compile(r"(?:An?|Some) ([A-Za-z]+(?: [A-Za-z]+){0,2})(?: ?[,(].*)?\.?")
# Words that describe an object's state and aren't part of its name.
MANNERS = {"baby", "sitting", "sleeping", "male", "brown", "colorful", "little", "big", "eared"}
# Names whose last word alone names something else: a sea lion is no lion.
NO_KIND_OF_IT = {"sea lion"}
# Animals of the world pug, under the names there.
OF_PUG = {
    "caribou": ("mammals/deer/caribou",),
    "elephant": ("mammals/elephant",),
    "camel": ("mammals/camel/camel", "mammals/camel/dromedary"),
    "penguin": ("birds/penguin", "birds/magellanic_penguin", "birds/little-penguin"),
    "zebra": ("mammals/equines/zebra",),
    "bear": ("mammals/bears/bear", "mammals/bears/european-bear"),
    "crow": ("birds/crow",),
    "rhinoceros": ("mammals/rhino_black",),
    "dolphin": ("mammals/aquatic/dolphin",),
    "lion": ("mammals/cats/lion", "mammals/cats/lion-2"),
    "orca": ("mammals/aquatic/orca",),
    "pig": ("mammals/pig", "mammals/pig_golden", "mammals/pig_golden2"),
    "rabbit": ("mammals/rodents/rabbit", "mammals/rodents/rabbit-2", "mammals/rabbit_little"),
    "squirrel": ("mammals/rodents/squirrel",),
}
_NAME_OF = {f"{ANIMALS}/{path}.png": name for name, paths in OF_PUG.items() for path in paths}


class Stamp(NamedTuple):
    """A photograph of a named object."""

    name: str
    path: Path
    is_animal: bool
    relative: str
    """The path inside the folder of photographs, the package's or the user's."""


def stamps_folder(given: Path | None) -> Path:
    """Return the folder of the package's pictures: in `given`, where the package was unpacked, or where the system
    installs it."""
    shares = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    roots = [given] if given else [Path(share) for share in shares.split(":")]
    for root in roots:
        for place in PLACES:
            if (root / place / ANIMALS).is_dir():
                return root / place
    where = str(given) if given else "this system"
    raise UserError(
        f"{where} has no pictures of {PACKAGE} (a folder with {ANIMALS}/ in it); install it (apt-get install "
        f"{PACKAGE}), or unpack it (apt-get download {PACKAGE}; dpkg-deb -x {PACKAGE}_*.deb FOLDER) and give --package "
        "FOLDER"
    )


def stamps(folder: Path) -> list[Stamp]:
    """Return all photographs that have a name, sorted by name and path."""
    found = list(named_stamps(folder))
    names = {stamp.name for stamp in found}
    return sorted(stamp._replace(name=general_name(stamp.name, names)) for stamp in found)


def named_stamps(folder: Path) -> Iterator[Stamp]:
    """Yield each photograph that has a name."""
    for path, inside in pictures_below(folder, (".png",)):
        left_out = set(inside.parts) & set(LEFT_OUT) or inside.as_posix() in DRAWN
        if left_out or not is_photograph(path):
            continue
        if name := _NAME_OF.get(inside.as_posix()) or name_from_text(path):
            yield Stamp(name, path, inside.parts[0] == ANIMALS, inside.as_posix())


def pictures_below(folder: Path, endings: Sequence[str]) -> Iterator[tuple[Path, Path]]:
    """Yield each file with one of the endings, and its path inside the folder."""
    for path in files_below(folder):
        inside = path.relative_to(folder)
        if path.suffix.lower() in endings and not is_litter(inside):
            yield path, inside


def is_photograph(path: Path) -> bool:
    """Whether a picture is in colour and isn't a drawing. A drawing has an `.svg` file beside it, or a mark in its
    `.dat` file."""
    from menagerie.envs.core.pictures import Limits, open_picture

    data = path.with_suffix(".dat")
    words = set(data.read_text(errors="replace").split()) if data.is_file() else set()
    if path.with_suffix(".svg").exists() or words & set(COLORED_IN):
        return False
    try:
        with open_picture(path, Limits()) as picture:
            return picture.mode in ("RGBA", "RGB")
    except Exception:  # decoders raise anything for files that they can't read
        return False


def name_from_text(path: Path) -> str:
    """Return the name in the first line of a picture's text file, in lower case and without words for the object's
    state. Empty if there is no such file or that line is a longer sentence."""
    text = path.with_suffix(".txt")
    lines = text.read_text(errors="replace").splitlines() if text.is_file() else []
    match = SENTENCE.fullmatch(lines[0].strip()) if lines else None
    words = match[1].lower().split() if match else []
    return " ".join([word for word in words if word not in MANNERS] or words)


def general_name(name: str, names: set[str]) -> str:
    """Return the last word of a name if `names` has it and it names the same kind: "tiger" for "sumatran tiger"; else
    the whole name."""
    last = name.split()[-1]
    return last if last in names and name not in NO_KIND_OF_IT else name


def own_stamps(folder: Path) -> list[Stamp]:
    """Return the cut-outs in a folder: `lion.png`, `lion-2.png` and `lion/anything.png` are photographs of a lion."""
    if not folder.is_dir():
        raise UserError(f"--cutouts {folder} is no folder; give one with pictures such as lion.png and lion-2.png")
    found = []
    for path, inside in pictures_below(folder, CUTOUT_ENDINGS):
        given = inside.parts[0] if len(inside.parts) > 1 else re.sub(r"[-_ ]*\d+$", "", path.stem)
        if not (name := as_words(given)):
            raise UserError(f"{path}: {given!r} is no name for captions; rename it in letters, as snow_leopard-2.png")
        found.append(Stamp(name, path, True, inside.as_posix()))
    if (objects := len({stamp.name for stamp in found})) < LEAST:
        raise UserError(f"--cutouts {folder} has pictures of {objects} objects; it needs {LEAST}")
    return found


def background_pictures(folder: Path) -> dict[str, list[Path]]:
    """Return pictures by background: each subfolder is one background, and so is each picture directly in `folder`.
    Pictures and subfolders whose name isn't words belong to a background named after `folder`, or "scenery".

    At most `MOST_PICTURES` of a background are used, the first by name. Prints each further one, and each that is left
    out because its metadata rotate it. Raises if a picture that is used can't be drawn.
    """
    if not folder.is_dir():
        raise UserError(f"--backgrounds {folder} is no folder; give one with photographs (.png, .jpg, .webp)")
    used: dict[str, list[Path]] = {}
    for path, inside in pictures_below(folder, ENDINGS):
        name = as_words(inside.parts[0] if len(inside.parts) > 1 else path.stem)
        name = name or as_words(folder.resolve().name) or "scenery"
        pictures = used.get(name, [])
        if len(pictures) == MOST_PICTURES:
            print(f"left out: {path}, as {name!r} has {MOST_PICTURES} pictures; move it to another folder")
            continue
        try:
            read_picture(path)
        except Turned as error:  # phones write such pictures: one of them doesn't end the command
            print(f"left out: {error}")
            continue
        used[name] = [*pictures, path]
    if not used:
        raise UserError(f"--backgrounds {folder} has no photographs ({', '.join(ENDINGS)}) that can be drawn")
    return used


def as_words(name: str) -> str:
    """Return a file's or folder's name as lower-case words; empty if it isn't made of letters."""
    spaced = name.lower().replace("_", " ").replace("-", " ")
    return spaced if NAME.fullmatch(spaced) else ""

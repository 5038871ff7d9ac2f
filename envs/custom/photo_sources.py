"""The package's pictures: where they are, which are photographs, and the names that its own texts give them."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.litter import is_litter

NAME = "tuxpaint-stamps-default"
PLACES = ("", "stamps", "tuxpaint/stamps", "share/tuxpaint/stamps", "usr/share/tuxpaint/stamps")
ANIMALS = "animals"
# Folders of what is no photograph of one thing: drawings, toys in the shape of something else, signs.
LEFT_OUT = ("cartoon", "toys", "symbols", "flags", "roadsigns")
DRAWN = ("animals/mammals/hedgehog.png",)  # a drawing among photographs
# What a picture's `.dat` file says of drawings that Tux Paint colours.
COLORED_IN = ("colorable",)
# "A sea lion.", "A peacock (a male peafowl).", "A spiny lobster, from the Hawaiian islands."
SENTENCE = re.compile(r"(?:An?|Some) ([A-Za-z]+(?: [A-Za-z]+){0,2})(?: ?[,(].*)?\.?")
# Words of names that say how a thing is rather than what it is.
MANNERS = {"baby", "sitting", "sleeping", "male", "brown", "colorful", "little", "big", "eared"}
# Names whose last word names something else: a sea lion is no lion.
NO_KIND_OF_IT = {"sea lion"}
# The animals that the world pug has too, by the names there.
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
    """A photographed thing."""

    name: str
    path: Path
    is_animal: bool
    relative: str
    """The path inside the package's folder."""


def stamps_folder(given: Path | None) -> Path:
    """The folder of the package's pictures: in `given`, wherever it was unpacked, or where systems install it."""
    shares = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    roots = [given] if given else [Path(share) for share in shares.split(":")]
    for root in roots:
        for place in PLACES:
            if (root / place / ANIMALS).is_dir():
                return root / place
    where = str(given) if given else "this system"
    raise UserError(
        f"{where} has no pictures of {NAME} (a folder with {ANIMALS}/ in it); install it (apt-get install {NAME}), or "
        f"unpack it (apt-get download {NAME}; dpkg-deb -x {NAME}_*.deb FOLDER) and give --package FOLDER"
    )


def stamps(folder: Path) -> list[Stamp]:
    """All photographs whose text names them, sorted by name and path."""
    found = list(named(folder))
    names = {stamp.name for stamp in found}
    return sorted(stamp._replace(name=kind_of(stamp.name, names)) for stamp in found)


def named(folder: Path) -> Iterator[Stamp]:
    """Each photograph that has a name."""
    for path in sorted(folder.rglob("*.png")):
        inside = path.relative_to(folder)
        left_out = is_litter(inside) or set(inside.parts) & set(LEFT_OUT) or inside.as_posix() in DRAWN
        if left_out or not is_photograph(path):
            continue
        if name := _NAME_OF.get(inside.as_posix()) or name_of(path):
            yield Stamp(name, path, inside.parts[0] == ANIMALS, inside.as_posix())


def is_photograph(path: Path) -> bool:
    """Whether a picture is in colour and was not drawn: drawings lie beside the `.svg` that they were made from."""
    from PIL import Image

    data = path.with_suffix(".dat")
    words = set(data.read_text(errors="replace").split()) if data.is_file() else set()
    if path.with_suffix(".svg").exists() or words & set(COLORED_IN):
        return False
    try:
        with Image.open(path) as picture:
            return picture.mode in ("RGBA", "RGB")
    except OSError:
        return False


def name_of(path: Path) -> str:
    """The name in the first line of a picture's text, in lower case; empty where it is a longer sentence."""
    text = path.with_suffix(".txt")
    lines = text.read_text(errors="replace").splitlines() if text.is_file() else []
    match = SENTENCE.fullmatch(lines[0].strip()) if lines else None
    words = match[1].lower().split() if match else []
    return " ".join([word for word in words if word not in MANNERS] or words)


def kind_of(name: str, names: set[str]) -> str:
    """The shorter name of what else is there under it: a "sumatran tiger" is a "tiger"."""
    last = name.split()[-1]
    return last if last in names and name not in NO_KIND_OF_IT else name

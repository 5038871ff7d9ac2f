"""Writes worlds of cut-out photographs: real animals in the places and relations of synthetic ones.

    apt-get download tuxpaint-stamps-default && dpkg-deb -x tuxpaint-stamps-default_*.deb stamps
    menagerie photos my-photos --package stamps
    menagerie check-renderer --world my-photos/photos.toml
    python studies/binding_grid.py --preset smoke --world my-photos/photos.toml

    menagerie photos my-photos --cutouts pictures      # your own: lion.png, lion-2.png, snow_leopard.png, ...

The folder then has two worlds in pug's textures: `photos.toml`, with the animals that the world pug has too, and
`photos-wide.toml`, with all animals. `photos-natural.toml` and `photos-wide-natural.toml` are the same in the animals'
own colours. The folder also has copies of the pictures, so that it can be moved. Drawings are left out, and pictures
with too few pixels for --resolution. Your own cut-outs are all in `photos.toml` and `photos-natural.toml`.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import copy_file, write_text
from menagerie.envs.core.pictures import Limits, open_picture
from menagerie.envs.core.reading import files_below, is_system_file
from menagerie.envs.core.validation import SIDE
from menagerie.envs.custom.ingredients import MOST_PICTURES
from menagerie.envs.world import NAME

HEADER = "# Written by `menagerie photos`. The pictures in cutouts/ are {origin}.\n"
PACKAGED = """of Debian's {package}, under its licence
# (GPL-2, see /usr/share/doc/{package}/copyright of the package): they are no part of this project"""
OWN = "copies of those in {folder}"
CUTOUTS, BACKGROUNDS = "cutouts", "backgrounds"  # folders beside a world file
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


@dataclass(frozen=True)
class Config:
    """Write worlds of photographs."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Folder to write to; files of the same names are replaced."""
    package: Path | None = None
    """Where the package tuxpaint-stamps-default was unpacked; by default where the system has it installed."""
    cutouts: Path | None = None
    """Folder of your own cut-outs in place of the package: pictures with transparency, named after what they show."""
    backgrounds: Path | None = None
    """Folder of photographs for backgrounds, which are named after the files: each picture is a background, and so is
    each folder of pictures. By default the backgrounds are those of the world pug."""
    objects: bool = False
    """Put all photographed objects into the world photos-wide, not animals alone: fruit, tools, vehicles, ..."""
    resolution: Annotated[int, SIDE] = 224
    """Pixels along a scene's side for which photographs must be large enough."""


def run(config: Config) -> None:
    """Write the worlds and report what is in them."""
    from menagerie.envs.custom.world_file import load_own_world

    usable = drawable_stamps(all_stamps(config), config.resolution)
    scenery = background_pictures(config.backgrounds) if config.backgrounds else {}
    origin = OWN.format(folder=json.dumps(str(config.cutouts))) if config.cutouts else PACKAGED.format(package=PACKAGE)
    header = HEADER.format(origin=origin)
    for name, photographs in worlds(config, usable).items():
        for suffix, natural in (("", False), ("-natural", True)):
            write_photo_world(config.folder / f"{name}{suffix}.toml", header, photographs, scenery, natural)
        world = load_own_world(config.folder / f"{name}.toml")
        print(f"{config.folder / name}.toml: {len(world.animals)} objects, {len(photographs)} photographs")


def all_stamps(config: Config) -> list[Stamp]:
    """Return the photographs that may be drawn: the user's own, or the package's."""
    if config.cutouts:
        if config.package or config.objects:
            raise UserError("--cutouts takes the place of the package; leave out --package and --objects")
        return own_stamps(config.cutouts)
    return [stamp for stamp in stamps(stamps_folder(config.package)) if stamp.is_animal or config.objects]


def worlds(config: Config, usable: list[Stamp]) -> dict[str, list[Stamp]]:
    """Return the photographs in each world to be written, by the world's name."""
    if config.cutouts:
        return {"photos": usable}
    shared = [stamp for stamp in usable if stamp.is_animal and stamp.name in OF_PUG]
    return {"photos": shared, "photos-wide": usable}


def drawable_stamps(stamps: Sequence[Stamp], resolution: int) -> list[Stamp]:
    """Return the photographs that can be drawn at a resolution; prints for each of the others the reason why not."""
    from menagerie.envs.custom.cutouts import check_sharp
    from menagerie.envs.drawing.cutout import Cutout, read_photograph

    usable = []
    for stamp in stamps:
        try:
            photograph = read_photograph(stamp.path, stamp.path.read_bytes())
            check_sharp(stamp.path, Cutout((photograph,), size=1.4), resolution)
            usable.append(stamp)
        except UserError as error:
            print(f"left out: {stamp.name} ({error})")
    return usable


def write_photo_world(
    path: Path, header: str, stamps: Sequence[Stamp], scenery: Mapping[str, Sequence[Path]], natural: bool
) -> None:
    """Write a world file, and copies of all its pictures in folders beside it."""
    pictures: dict[str, dict[str, Path]] = {}
    for stamp in stamps:
        pictures.setdefault(stamp.name, {})[f"{CUTOUTS}/{stamp.relative}"] = stamp.path
    lines = [header, f"animals = {json.dumps(sorted(pictures))}"]
    lines += [f"backgrounds = {json.dumps(sorted(scenery))}"] if scenery else []
    animals = {stamp.name for stamp in stamps if stamp.is_animal}
    lines += ["", "[sets]", f"animals = {json.dumps(sorted(animals))}"] if animals != set(pictures) else []
    for name, copies in sorted(pictures.items()):
        lines += ["", f'[animal."{name}"]', f"cutouts = {json.dumps(copy_pictures(path.parent, copies))}"]
        lines += ['texture = "own"'] if natural else []
    for name, paths in sorted(scenery.items()):
        start = f"{BACKGROUNDS}/{name.replace(' ', '_')}"
        copies = {f"{start}-{number}{picture.suffix.lower()}": picture for number, picture in enumerate(paths, 1)}
        lines += ["", f'[background."{name}"]', f"image = {json.dumps(copy_pictures(path.parent, copies))}"]
    write_text(path, "\n".join(lines) + "\n")


def copy_pictures(folder: Path, copies: Mapping[str, Path]) -> list[str]:
    """Copy pictures to their new paths in `folder`; returns those paths."""
    for place, path in copies.items():
        copy_file(path, folder / place)
    return list(copies)


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
        if path.suffix.lower() in endings and not is_system_file(inside):
            yield path, inside


def is_photograph(path: Path) -> bool:
    """Whether a picture is in colour and isn't a drawing. A drawing has an `.svg` file beside it, or a mark in its
    `.dat` file."""
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

    At most `MOST_PICTURES` of a background are used, the first by name; the others are printed. Raises if one that is
    used can't be drawn.
    """
    from menagerie.envs.drawing.picture_file import read_picture

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
        read_picture(path)
        used[name] = [*pictures, path]
    if not used:
        raise UserError(f"--backgrounds {folder} has no photographs ({', '.join(ENDINGS)}) that can be drawn")
    return used


def as_words(name: str) -> str:
    """Return a file's or folder's name as lower-case words; empty if it isn't made of letters."""
    spaced = name.lower().replace("_", " ").replace("-", " ")
    return spaced if NAME.fullmatch(spaced) else ""

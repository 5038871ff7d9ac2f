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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file, write_text
from menagerie.envs.core.validation import SIDE

if TYPE_CHECKING:
    from menagerie.envs.custom.photo_sources import Stamp

HEADER = "# Written by `menagerie photos`. The pictures in cutouts/ are {origin}.\n"
PACKAGED = """of Debian's {package}, under its licence
# (GPL-2, see /usr/share/doc/{package}/copyright of the package): they are no part of this project"""
OWN = "copies of those in {folder}"
CUTOUTS, BACKGROUNDS = "cutouts", "backgrounds"  # folders beside a world file


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
    from menagerie.envs.custom.photo_sources import PACKAGE, background_pictures
    from menagerie.envs.custom.world_file import load_own_world

    usable = drawable(all_stamps(config), config.resolution)
    scenery = background_pictures(config.backgrounds) if config.backgrounds else {}
    origin = OWN.format(folder=json.dumps(str(config.cutouts))) if config.cutouts else PACKAGED.format(package=PACKAGE)
    header = HEADER.format(origin=origin)
    for name, photographs in worlds(config, usable).items():
        for suffix, natural in (("", False), ("-natural", True)):
            write_photo_world(config.folder / f"{name}{suffix}.toml", header, photographs, scenery, natural)
        world = load_own_world(config.folder / f"{name}.toml")
        print(f"{config.folder / name}.toml: {len(world.animals)} objects, {len(photographs)} photographs")


def all_stamps(config: Config) -> list["Stamp"]:
    """Return the photographs that may be drawn: the user's own, or the package's."""
    from menagerie.envs.custom.photo_sources import own_stamps, stamps, stamps_folder

    if config.cutouts:
        if config.package or config.objects:
            raise UserError("--cutouts takes the place of the package; leave out --package and --objects")
        return own_stamps(config.cutouts)
    return [stamp for stamp in stamps(stamps_folder(config.package)) if stamp.is_animal or config.objects]


def worlds(config: Config, usable: list["Stamp"]) -> dict[str, list["Stamp"]]:
    """Return the photographs in each world to be written, by the world's name."""
    from menagerie.envs.custom.photo_sources import OF_PUG

    if config.cutouts:
        return {"photos": usable}
    shared = [stamp for stamp in usable if stamp.is_animal and stamp.name in OF_PUG]
    return {"photos": shared, "photos-wide": usable}


def drawable(stamps: Sequence["Stamp"], resolution: int) -> list["Stamp"]:
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
    path: Path, header: str, stamps: Sequence["Stamp"], scenery: Mapping[str, Sequence[Path]], natural: bool
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
        with whole_file(folder / place) as temporary:
            temporary.write_bytes(path.read_bytes())
    return list(copies)

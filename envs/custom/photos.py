"""Writes worlds of cut-out photographs: real animals in the places and relations of synthetic ones.

    apt-get download tuxpaint-stamps-default && dpkg-deb -x tuxpaint-stamps-default_*.deb stamps
    menagerie photos my-photos --package stamps
    menagerie check-renderer --world my-photos/photos.toml
    python studies/binding_grid.py --preset smoke --world my-photos/photos.toml

    menagerie photos my-photos --cutouts pictures      # your own: lion.png, lion-2.png, snow_leopard.png, ...

The folder then has `photos.toml`, of the animals that the world pug has too, and `photos-wide.toml`, of all animals,
in pug's textures; the same in their own colours as `photos-natural.toml` and `photos-wide-natural.toml`; and copies of
the pictures, so that it can be moved. Drawings are left out, and pictures with too few pixels for --resolution. Of
cut-outs of your own all are in `photos.toml` and `photos-natural.toml`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from menagerie.envs.core.errors import UserError

if TYPE_CHECKING:
    from menagerie.envs.custom.photo_sources import Stamp


@dataclass(frozen=True)
class Config:
    """Write worlds of photographs."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Folder to write to; existing files of these names are replaced."""
    package: Path | None = None
    """Where the package tuxpaint-stamps-default was unpacked; by default where the system has it installed."""
    cutouts: Path | None = None
    """Folder of your own cut-outs in place of the package: pictures with transparency, named after what they show."""
    backgrounds: Path | None = None
    """Folder of photographs for backgrounds: each picture, or each folder of pictures, is one, of its name. By
    default those of the world pug."""
    things: bool = False
    """Have all photographed things in photos-wide, not animals alone: fruit, tools, vehicles, ..."""
    resolution: int = 224
    """Pixels along a scene's side for which photographs must be large enough."""


def run(config: Config) -> None:
    """Write the worlds and report what is in them."""
    from menagerie.envs.stamps.backgrounds import background_pictures
    from menagerie.envs.stamps.worlds import drawable, write_world
    from menagerie.envs.worlds import load_world

    usable, refused = drawable(all_stamps(config), config.resolution)
    for stamp, reason in refused.items():
        print(f"left out: {stamp.name} ({reason})")
    scenery = background_pictures(config.backgrounds) if config.backgrounds else {}
    for name, its in worlds(config, usable).items():
        animals = sorted({stamp.name for stamp in its if stamp.is_animal})
        groups = {"animals": animals} if len(animals) < len({stamp.name for stamp in its}) else {}
        for suffix, natural in (("", False), ("-natural", True)):
            write_world(config.folder / f"{name}{suffix}.toml", its, scenery, groups, natural)
        world = load_world(str(config.folder / f"{name}.toml"))
        print(f"{config.folder / name}.toml: {len(world.animals)} things, {len(its)} photographs")


def all_stamps(config: Config) -> list["Stamp"]:
    """The photographs that may be drawn: the user's own, or the package's."""
    from menagerie.envs.custom.photo_sources import stamps, stamps_folder
    from menagerie.envs.stamps.own_folder import own_stamps

    if config.cutouts:
        if config.package or config.things:
            raise UserError("--cutouts takes the place of the package; leave out --package and --things")
        return own_stamps(config.cutouts)
    return [stamp for stamp in stamps(stamps_folder(config.package)) if stamp.is_animal or config.things]


def worlds(config: Config, usable: list["Stamp"]) -> dict[str, list["Stamp"]]:
    """The photographs of each world, by its name."""
    from menagerie.envs.custom.photo_sources import OF_PUG

    if config.cutouts:
        return {"photos": usable}
    shared = [stamp for stamp in usable if stamp.is_animal and stamp.name in OF_PUG]
    return {"photos": shared, "photos-wide": usable}

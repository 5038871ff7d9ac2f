"""Writes worlds of cut-out photographs: real animals in the places and relations of synthetic ones.

    apt-get download tuxpaint-stamps-default && dpkg-deb -x tuxpaint-stamps-default_*.deb stamps
    python -m envs photos my-photos --package stamps
    python -m envs check --world my-photos/photos.toml
    python studies/binding_grid.py --preset smoke --world my-photos/photos.toml

The folder then has `photos.toml`, of the animals that the world pug has too, and `photos-wide.toml`, of all animals,
in pug's textures; the same in their own colours as `photos-natural.toml` and `photos-wide-natural.toml`; and copies of
the pictures, so that it can be moved. Drawings are left out, and pictures with too few pixels for --resolution.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class PhotosConfig:
    """Write worlds of photographs."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Folder to write to; existing files of these names are replaced."""
    package: Path | None = None
    """Where the package tuxpaint-stamps-default was unpacked; by default where the system has it installed."""
    backgrounds: Path | None = None
    """Folder of photographs for backgrounds: each picture, or each folder of pictures, is one, of its name. By
    default those of the world pug."""
    things: bool = False
    """Have all photographed things in photos-wide, not animals alone: fruit, tools, vehicles, ..."""
    resolution: int = 224
    """Pixels along a scene's side for which photographs must be large enough."""


def main(config: PhotosConfig) -> None:
    """Write the worlds and report what is in them."""
    from envs.stamps.backgrounds import background_pictures
    from envs.stamps.package import OF_PUG, stamps, stamps_folder
    from envs.stamps.worlds import drawable, write_world
    from envs.worlds import load_world

    found = [stamp for stamp in stamps(stamps_folder(config.package)) if stamp.is_animal or config.things]
    usable, refused = drawable(found, config.resolution)
    for stamp, reason in refused.items():
        print(f"left out: {stamp.name} ({reason})")
    scenery = background_pictures(config.backgrounds) if config.backgrounds else {}
    groups = {"animals": sorted({stamp.name for stamp in usable if stamp.is_animal})}
    shared = [stamp for stamp in usable if stamp.is_animal and stamp.name in OF_PUG]
    for name, its in {"photos": shared, "photos-wide": usable}.items():
        for suffix, natural in (("", False), ("-natural", True)):
            path = config.folder / f"{name}{suffix}.toml"
            write_world(path, its, scenery, groups if config.things and name != "photos" else {}, natural)
        world = load_world(str(config.folder / f"{name}.toml"))
        print(f"{config.folder / name}.toml: {len(world.animals)} things, {len(its)} photographs")

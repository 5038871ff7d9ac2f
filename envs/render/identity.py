"""Names for all that decides pixels: what of this package draws, and what it is given to draw.

Only what `DRAWS` lists counts, so that a new check, page or helper elsewhere renders nothing anew. What
these files import must be listed too, or be in `NAMES`, which only say and check what is drawn (a test
walks the imports).
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from menagerie.envs.world import World

PACKAGE = Path(__file__).parents[1]

# Folders and files that decide an entry of the atlas: one thing, lit on one ground.
ENTRIES = ("slots.py", "shapes", "drawing", "animals", "textures", "backgrounds", "atlas")
# ... and those that put entries together to an image.
DRAWS = (*ENTRIES, "render/compositor.py", "render/entry_pool.py", "render/renderer.py")
# What these may import beside themselves: names, errors and files decide no pixel.
NAMES = (
    "scene.py",
    "world.py",
    "worlds.py",
    "catalog.py",
    "custom",
    "core",
    "render/atlas_cache.py",
    "render/identity.py",
)


def entry_identity(resolution: int, world: World) -> str:
    """A name for all that decides an entry's pixels besides its key: an edited animal changes it.

    What cut-outs need besides is in `world.own`; see `menagerie.envs.render.worlds`.
    """
    if world.cutouts:
        raise ValueError(f"world {world.name!r} has cut-outs, which `Renderer` doesn't draw: use `open_renderer`")
    return source_digest(ENTRIES, resolution, world.textures, world.backgrounds, world.own)


def image_identity(world: World, resolution: int) -> str:
    """A name for all that decides the images of a world; the renderer's version is its source."""
    return source_digest(DRAWS, resolution, world)


def source_digest(listed: Iterable[str], *settings: object) -> str:
    """Hash of `settings` and of the listed sources of this package."""
    digest = hashlib.sha256(repr(settings).encode())
    for file in source_files(listed):
        digest.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def source_files(listed: Iterable[str]) -> list[Path]:
    """All sources and tables in the listed files and folders, sorted by their place."""
    places = [PACKAGE / name for name in listed]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*"))]
    return sorted(file for file in files if file.suffix in (".py", ".json"))

"""Renders scenes, and names the results.

The names of atlas entries and of images depend on `RENDER_VERSION` and on the content to draw; `World.own` is the hash
of a user's files. Whoever changes a pixel of any scene must raise the version, so that older renderings aren't used any
more (tests/envs/test_golden.py).
"""

from menagerie.envs.core.identity import digest
from menagerie.envs.world import World

RENDER_VERSION = 1
ROW_VERSION = 1  # the same for worlds whose things stand in a row


def entry_identity(resolution: int, world: World) -> str:
    """A name for everything that decides the pixels of an atlas entry, besides its key."""
    return digest([RENDER_VERSION, resolution, world.textures, world.backgrounds, world.own])


def image_identity(world: World, resolution: int) -> str:
    """A name for everything that decides the images of a world. Groups of animals aren't part of it: they change no
    image."""
    names = (world.name, world.animals, world.textures, world.backgrounds, world.sizes)
    row = [ROW_VERSION, world.row] if world.row else []
    return digest([RENDER_VERSION, resolution, *names, world.own, *row])

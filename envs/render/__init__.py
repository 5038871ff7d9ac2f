"""Rendering of scenes, and hashes that name the results.

The names of atlas entries and of images depend on `RENDER_VERSION` and on what is drawn; `World.own` stands for a
user's files. Raise the version when you change a pixel of any scene, so that older renderings aren't used any more
(tests/envs/test_golden.py).
"""

from menagerie.envs.core.identity import digest
from menagerie.envs.world import World

RENDER_VERSION = 1
ROW_VERSION = 1  # the same for worlds whose objects stand in a row


def entry_identity(resolution: int, world: World) -> str:
    """Return a hash of all that decides the pixels of an atlas entry besides the entry's key."""
    return digest([RENDER_VERSION, resolution, world.textures, world.backgrounds, world.own])


def image_identity(world: World, resolution: int) -> str:
    """Return a hash of everything that decides the images of a world. Groups of animals change no image and aren't in
    the hash."""
    names = (world.name, world.animals, world.textures, world.backgrounds, world.sizes)
    row = [ROW_VERSION, world.row if world.row.in_turn else world.row[:2]] if world.row else []
    return digest([RENDER_VERSION, resolution, *names, world.own, *row])

"""Renders scenes, and names what it renders.

Names of atlas entries and of images hold `RENDER_VERSION` and what is given to draw; what a user's files add is in
`World.own`. Whoever changes a pixel of any scene raises the version: then nothing that was rendered before is taken for
it (tests/envs/test_golden.py).
"""

from menagerie.envs.core.identity import digest
from menagerie.envs.world import World

RENDER_VERSION = 1


def entry_identity(resolution: int, world: World) -> str:
    """A name for all that decides the pixels of an entry of the atlas, besides its key."""
    return digest([RENDER_VERSION, resolution, world.textures, world.backgrounds, world.own])


def image_identity(world: World, resolution: int) -> str:
    """A name for all that decides the images of a world; groups of animals decide none."""
    names = (world.name, world.animals, world.textures, world.backgrounds, world.sizes)
    return digest([RENDER_VERSION, resolution, *names, world.own])

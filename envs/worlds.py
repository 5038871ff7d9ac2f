"""Worlds by name or from a user's TOML file, and random scenes of them for checks and contact sheets."""

from pathlib import Path
from typing import TYPE_CHECKING

from menagerie.envs.core.errors import choose
from menagerie.envs.layouts import LAYOUTS, MOST
from menagerie.envs.relations import pair_slots
from menagerie.envs.scene import Object, Scene
from menagerie.envs.world import WORLDS, World

if TYPE_CHECKING:
    import numpy as np


def load_world(name: str) -> World:
    """Return the world called `name`, or the one in a TOML file; raises for an unknown name, with the nearest one."""
    if name.endswith(".toml"):
        from menagerie.envs.custom.world_file import load_own_world  # late: a built-in world needs no numpy

        return load_own_world(Path(name))
    return WORLDS[choose("world", name, WORLDS)]


def random_object(world: World, animal: str, slot: str, random: "np.random.Generator") -> Object:
    """Return the animal in a random texture and, if the world has sizes, in a random size."""
    texture = str(random.choice(world.textures))
    return Object(animal, texture, slot, str(random.choice(world.sizes)) if world.sizes else "")


def random_scenes(world: World, count: int, seed: int, pairs: float = 0.75, views: int = 4) -> list[Scene]:
    """Draw random scenes; they use the backgrounds in turn. Each shows two animals in the slots of a pair with
    probability `pairs`, else one animal."""
    import numpy as np

    random, relations = np.random.default_rng(seed), pair_slots()
    scenes = []
    for index in range(count):
        slots = relations[random.integers(len(relations))] if random.random() < pairs else ("center",)
        animals = random.choice(world.animals, len(slots), replace=False)
        objects = tuple(
            random_object(world, str(animal), slot, random) for animal, slot in zip(animals, slots, strict=True)
        )
        scenes.append(Scene(world.backgrounds[index % len(world.backgrounds)], objects, int(random.integers(views))))
    return scenes


def random_in_layout(world: World, layout: str, count: int, seed: int, views: int = 4) -> list[Scene]:
    """Draw random scenes of a layout, with two to six different animals in turn, at most as many as the world has."""
    import numpy as np

    random = np.random.default_rng(seed)
    chosen, most = LAYOUTS[choose("layout", layout, LAYOUTS)], min(MOST, len(world.animals))
    scenes = []
    for index in range(count):
        places = chosen.places(2 + index % (most - 1), random)
        animals = random.choice(world.animals, len(places), replace=False)
        objects = (random_object(world, str(animal), at, random) for animal, at in zip(animals, places, strict=True))
        scenes.append(Scene(str(random.choice(world.backgrounds)), tuple(objects), int(random.integers(views))))
    return scenes

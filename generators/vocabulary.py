"""The names behind the factor indices of a scene table."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from menagerie.envs.core.reading import parse_json, shaped
from menagerie.envs.scene import MOST_THINGS, Scene, Thing
from menagerie.envs.slots import PAIR_SLOTS, SLOTS
from menagerie.envs.world import World

# Indices of factors; -1 for missing things, and for sizes in worlds without sizes.
SCENE_TYPE = np.dtype(
    [
        ("background", "i2"),
        ("view", "i4"),
        ("animal", "i2", (MOST_THINGS,)),
        ("texture", "i2", (MOST_THINGS,)),
        ("slot", "i2", (MOST_THINGS,)),
        ("size", "i2", (MOST_THINGS,)),
    ]
)


def has_crowds(table: np.ndarray) -> bool:
    """Whether a thing of a scene table stands in a place of crowds: such files also have each thing's area."""
    return bool((table["slot"] >= len(PAIR_SLOTS)).any())


@dataclass(frozen=True)
class Vocabulary:
    """The names behind the factor indices of a scene table."""

    animals: tuple[str, ...]
    textures: tuple[str, ...]
    backgrounds: tuple[str, ...]
    slots: tuple[str, ...]
    sizes: tuple[str, ...] = ()

    @classmethod
    def of(cls, world: World) -> "Vocabulary":
        """The vocabulary of `world`, with all slots."""
        return cls(world.animals, world.textures, world.backgrounds, tuple(SLOTS), world.sizes)

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        names = shaped(parse_json(text, "the vocabulary"), dict[str, list[str]], "the vocabulary")
        return cls(**{name: tuple(words) for name, words in names.items()})

    def to_json(self, *tables: np.ndarray) -> str:
        """All names as one JSON object; without the places of crowds unless a scene of `tables` has one, so that files
        and names of what has no crowds stay as they were, byte for byte."""
        crowded = any(has_crowds(table) for table in tables)
        return json.dumps(asdict(self if crowded else replace(self, slots=self.slots[: len(PAIR_SLOTS)])))

    def encode(self, scenes: Sequence[Scene]) -> np.ndarray:
        """Scene table (n,) of `SCENE_TYPE`."""
        table = np.full(len(scenes), -1, SCENE_TYPE)
        for row, scene in zip(table, scenes, strict=True):
            row["background"] = self.backgrounds.index(scene.background)
            row["view"] = scene.view
            for i, thing in enumerate(scene.things):
                row["animal"][i] = self.animals.index(thing.animal)
                row["texture"][i] = self.textures.index(thing.texture)
                row["slot"][i] = self.slots.index(thing.slot)
                row["size"][i] = self.sizes.index(thing.size) if thing.size else -1
        return table

    def decode(self, table: np.ndarray) -> list[Scene]:
        """The scenes of a table; an index outside the vocabulary raises `IndexError`."""
        scenes = []
        for background, view, *columns in table.tolist():
            things = tuple(
                Thing(self.animals[a], self.textures[t], self.slots[s], self.sizes[z] if z >= 0 else "")
                for a, t, s, z in zip(*columns, strict=True)
                if a >= 0
            )
            scenes.append(Scene(self.backgrounds[background], things, view))
        return scenes

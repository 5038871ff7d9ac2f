"""The names behind the factor indices of a scene table."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Int16

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


THING = ("animal", "texture", "slot", "size")


def has_crowds(table: np.ndarray) -> bool:
    """Return whether any thing of a scene table stands in a slot of crowds. Shards with such scenes also hold each
    thing's area."""
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
        """Return all names as one JSON object. It has the slots of crowds only if a scene of `tables` uses one, so
        without crowds this text and its digests are the same, byte for byte, as before there were crowds."""
        crowded = any(has_crowds(table) for table in tables)
        return json.dumps(asdict(self if crowded else replace(self, slots=self.slots[: len(PAIR_SLOTS)])))

    def encode(self, scenes: Sequence[Scene]) -> np.ndarray:
        """Make a scene table (n,) of `SCENE_TYPE`, column by column. Raises `ValueError` for a name outside the
        vocabulary."""
        table = np.full(len(scenes), -1, SCENE_TYPE)
        table["background"] = numbers(self.backgrounds, [scene.background for scene in scenes])
        table["view"] = np.array([scene.view for scene in scenes], "i4")
        things = [thing for scene in scenes for thing in scene.things]
        counts = np.array([len(scene.things) for scene in scenes], np.int64)
        row = np.repeat(np.arange(len(scenes)), counts)
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        number_of = {thing: number for number, thing in enumerate(dict.fromkeys(things))}  # few, in many scenes
        which = np.fromiter(map(number_of.__getitem__, things), np.int64, len(things))
        columns = zip(*number_of, strict=True) if number_of else [()] * len(THING)
        for (name, known), words in zip(self._of_things.items(), columns, strict=True):
            table[name][row, place] = numbers(known, words, name == "size")[which]
        return table

    def decode(self, table: np.ndarray) -> list[Scene]:
        """Return the scenes of a table, made column by column. Raises `IndexError` for an index outside the
        vocabulary."""
        row, place = np.nonzero(table["animal"] >= 0)
        four = np.ascontiguousarray(np.stack([table[name][row, place] for name in THING], 1))
        kinds, which = np.unique(four.view(np.int64), return_inverse=True)  # the four numbers of a thing as one
        places = kinds.view(np.int16).reshape(-1, len(THING)).T
        columns = [
            words_at(known, column, name == "size")
            for (name, known), column in zip(self._of_things.items(), places, strict=True)
        ]
        things = list(map(list(map(Thing, *columns)).__getitem__, which.ravel().tolist()))
        ends = np.cumsum(np.bincount(row, minlength=len(table)))
        parts = (tuple(things[start:end]) for start, end in pairwise([0, *ends.tolist()]))
        return list(map(Scene, words_at(self.backgrounds, table["background"]), parts, table["view"].tolist()))

    @property
    def _of_things(self) -> dict[str, tuple[str, ...]]:
        return dict(zip(THING, (self.animals, self.textures, self.slots, self.sizes), strict=True))


def numbers(known: tuple[str, ...], words: Iterable[str], or_none: bool = False) -> Int16[np.ndarray, " n"]:
    """Return the index of each word in `known`. With `or_none`, an empty word gives -1. Raises `ValueError` for any
    other word."""
    place_of = {word: place for place, word in reversed(list(enumerate(known)))} | ({"": -1} if or_none else {})
    try:
        return np.array([place_of[word] for word in words], np.int16)
    except KeyError as error:
        raise ValueError(f"{error.args[0]!r} is not in the vocabulary") from error


def words_at(known: tuple[str, ...], places: Int16[np.ndarray, " n"], or_none: bool = False) -> list[str]:
    """Return the word of `known` at each index. With `or_none`, -1 gives an empty word. Raises `IndexError` for any
    other index."""
    if len(places) and (places.min() < -or_none or places.max() >= len(known)):
        raise IndexError(f"a scene has the number {places.min()} or {places.max()}, of {len(known)} names")
    return [known[place] if place >= 0 else "" for place in places.tolist()]

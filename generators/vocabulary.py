"""The names behind the numbers in a table of scenes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import UInt

from menagerie.envs.core.reading import check_shape, parse_json
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import SLOTS
from menagerie.envs.world import World

OBJECT = ("animal", "texture", "slot", "size")
SCENE = ("background", "view", *OBJECT)
Columns = Mapping[str, np.ndarray]
"""A table by column. A scene's row has numbers of names: background (n,), view (n,), and animal, texture, slot (n, k)
of up to k objects; worlds with sizes also have size (n, k). The greatest number of a type stands for no object."""


@dataclass(frozen=True)
class Vocabulary:
    """The names behind the numbers in a table of scenes."""

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
        names = check_shape(parse_json(text, "the vocabulary"), dict[str, list[str]], "the vocabulary")
        return cls(**{name: tuple(words) for name, words in names.items()})

    def names(self, column: str) -> tuple[str, ...]:
        """The names behind the numbers of a column, such as "animal"."""
        return getattr(self, f"{column}s")

    def encode(self, scenes: Sequence[Scene]) -> dict[str, np.ndarray]:
        """Make a table of scenes. Raises `ValueError` for a name outside the vocabulary."""
        objects = [obj for scene in scenes for obj in scene.objects]
        counts = np.array([len(scene.objects) for scene in scenes], np.int64)
        row = np.repeat(np.arange(len(scenes)), counts)
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        table = {
            "background": word_numbers(self.backgrounds, [scene.background for scene in scenes]),
            "view": np.array([scene.view for scene in scenes], np.int32),
        }
        for column in OBJECT:
            known = self.names(column)
            found = word_numbers(known, (getattr(obj, column) for obj in objects))
            if column != "size" or self.sizes:
                table[column] = np.full((len(scenes), max(counts, default=1)), none_in(known), type_of(known))
                table[column][row, place] = found
        return table

    def decode(self, table: Columns) -> list[Scene]:
        """Return the scenes of a table. Raises `IndexError` for a number without a name."""
        columns = {name: np.asarray(table[name]) for name in SCENE if name in table}
        row, place = np.nonzero(columns["animal"] != none_in(self.animals))
        words = [
            words_at(self.names(name), columns[name][row, place]) if name in columns else [""] * len(row)
            for name in OBJECT
        ]
        objects = list(map(cache(Object), *words))  # few different ones, in many scenes
        ends = np.cumsum(np.bincount(row, minlength=len(columns["view"])))
        parts = (tuple(objects[start:end]) for start, end in pairwise([0, *ends.tolist()]))
        return list(map(Scene, words_at(self.backgrounds, columns["background"]), parts, columns["view"].tolist()))


def type_of(known: Sequence[str]) -> type:
    """The smallest type for the numbers of these names and one more, which stands for none."""
    return np.uint8 if len(known) < 255 else np.uint16


def none_in(known: Sequence[str]) -> int:
    """The number that stands for none of these names."""
    return int(np.iinfo(type_of(known)).max)


def word_numbers(known: tuple[str, ...], words: Iterable[str]) -> UInt[np.ndarray, " n"]:
    """Return the number of each word in `known`, and that of none for an empty word. Raises `ValueError` for any other
    word."""
    number_of: dict[str, Any] = {"": none_in(known)} | {word: i for i, word in reversed(list(enumerate(known)))}
    try:
        return np.array([number_of[word] for word in words], type_of(known))
    except KeyError as error:
        raise ValueError(f"{error.args[0]!r} is not in the vocabulary") from error


def words_at(known: tuple[str, ...], places: np.ndarray) -> list[str]:
    """Return the word of each number, an empty one for none. Raises `IndexError` for any other number."""
    empty = none_in(known)
    if wrong := [place for place in set(places.tolist()) if place >= len(known) and place != empty]:
        raise IndexError(f"a scene has the number {wrong[0]}, of {len(known)} names")
    return [known[place] if place != empty else "" for place in places.tolist()]

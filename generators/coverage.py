"""Coverage: the combinations of an animal and a texture. Classes decide which of them train shows.

Animals and textures are shuffled into G classes each. A composition of an animal of class g and a texture of class h
has the distance (h - g) mod G. Train shows the composition if its distance is below coverage * G. So what train shows
at one coverage it shows at every higher one, and two animals of one class are shown in the same textures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator

Composition = tuple[str, str]  # animal, texture


@dataclass(frozen=True)
class Coverage:
    """The compositions of a world, and how many of their distances train shows."""

    animals: Mapping[str, int]
    """The class of each animal."""
    textures: Mapping[str, int]
    classes: int
    shown: int
    """Train shows the distances 0 to `shown` - 1."""

    def distance(self, animal: str, texture: str) -> int:
        """Return the composition's distance, from 0 to `classes` - 1. Train shows distance 0 at every coverage, and
        distance `classes` - 1 only at coverage 1."""
        return (self.textures[texture] - self.animals[animal]) % self.classes

    def seen(self, animal: str, texture: str) -> bool:
        """Whether train shows the animal in the texture."""
        return self.distance(animal, texture) < self.shown

    @property
    def trained(self) -> list[Composition]:
        """The compositions that train shows, in the world's order."""
        return self.at(*range(self.shown))

    def at(self, *distances: int) -> list[Composition]:
        """The compositions at these distances, in the world's order."""
        return [(a, t) for a in self.animals for t in self.textures if self.distance(a, t) in distances]

    def alike(self, one: Composition, other: Composition) -> bool:
        """Return whether train shows every composition, or both animals are of one class and both textures of one
        class.

        Then these two compositions, and the two that an exchange of their textures gives, are all seen or all
        unseen."""
        (animal, texture), (other_animal, other_texture) = one, other
        same = self.animals[animal] == self.animals[other_animal]
        return self.shown == self.classes or (same and self.textures[texture] == self.textures[other_texture])


def coverage_of(recipe: Mapping[str, Any], animals: Sequence[str], textures: Sequence[str]) -> Coverage:
    """Return the compositions of a split with these animals and textures. `recipe` is the one in its file."""
    return _coverage(recipe["seed"], recipe["coverage"], recipe["classes"], tuple(animals), tuple(textures))


@lru_cache(maxsize=64)
def _coverage(
    seed: int, coverage: float, classes: int, animals: tuple[str, ...], textures: tuple[str, ...]
) -> Coverage:
    shown = round_coverage(coverage, classes)
    if coverage < 1 and min(len(animals), len(textures)) < 2 * classes:
        raise UserError(
            f"{classes} classes need {2 * classes} animals and textures each, but the world has {len(animals)} and "
            f"{len(textures)}; lower classes, or take a world with more"
        )
    by_kind = (shuffled_classes(seed, kind, names, classes) for kind, names in (("a", animals), ("t", textures)))
    return Coverage(*by_kind, classes, shown)


def round_coverage(coverage: float, classes: int) -> int:
    """Return the number of distances that train shows. Raises unless `coverage` is a multiple of 1 / `classes` above 0;
    three digits are enough (0.333 for 1/3)."""
    shown = round(coverage * classes)
    if not shown or abs(coverage - shown / classes) > 0.0011:
        allowed = ", ".join(f"{k / classes:.3g}" for k in range(1, classes + 1))
        raise UserError(f"coverage {coverage:g} is no multiple of 1/{classes}; choose {allowed}, or other classes")
    return shown


def shuffled_classes(seed: int, kind: str, names: Sequence[str], classes: int) -> dict[str, int]:
    """Draw a class for each name, in the order of `names`. The sizes of classes differ by at most one."""
    place = np.argsort(generator(seed, "classes", kind).permutation(len(names)))
    return {name: int(spot) % classes for name, spot in zip(names, place, strict=True)}

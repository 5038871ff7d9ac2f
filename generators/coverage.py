"""Coverage: which compositions, combinations of an animal and a texture, train shows.

Each composition has a rank, and train shows the lowest ranks. So what train shows at one coverage it shows at every
higher one. Two rules give ranks: classes of animals and textures (multi-object splits), and a Latin square (binding
splits).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator

Composition = tuple[str, str]  # animal, texture
Names = tuple[str, ...]


@dataclass(frozen=True)
class Coverage:
    """The compositions of a world, and which of them train shows."""

    animals: Mapping[str, int]
    """The class of each animal; the Latin square has a class for each."""
    textures: Mapping[str, int]
    ranks: Mapping[Composition, int]
    """The rank of each composition, in the world's order."""
    ranks_shown: int
    """Train shows the compositions with ranks below this."""

    @cached_property
    def whole(self) -> bool:
        """Whether train shows all compositions."""
        return self.ranks_shown > self.highest

    @cached_property
    def highest(self) -> int:
        """The highest rank: of compositions that train shows only if it shows all."""
        return max(self.ranks.values())

    def seen(self, animal: str, texture: str) -> bool:
        """Whether train shows the animal in the texture."""
        return self.ranks[animal, texture] < self.ranks_shown

    def with_ranks(self, *ranks: int) -> list[Composition]:
        """The compositions of these ranks, in the world's order."""
        return [composition for composition, rank in self.ranks.items() if rank in ranks]

    @property
    def trained(self) -> list[Composition]:
        """The compositions that train shows, in the world's order."""
        return [composition for composition in self.ranks if self.seen(*composition)]

    def classes_of(self, composition: Composition) -> tuple[int, int]:
        """Return the classes of a composition's animal and of its texture."""
        return self.animals[composition[0]], self.textures[composition[1]]

    def alike(self, one: Composition, other: Composition) -> bool:
        """Return whether train shows every composition, or both animals are of one class and both textures of one
        class.

        Then these two compositions, and the two that an exchange of their textures gives, are all seen or all
        unseen."""
        (animal, texture), (other_animal, other_texture) = one, other
        same = self.animals[animal] == self.animals[other_animal]
        return self.whole or (same and self.textures[texture] == self.textures[other_texture])


def coverage_of(recipe: Mapping[str, Any], animals: Sequence[str], textures: Sequence[str]) -> Coverage:
    """Return the coverage of a split with these animals and textures. `recipe` has the fields of its recipe."""
    names = tuple(animals), tuple(textures)
    if "classes" in recipe:
        return coverage_by_classes(recipe["seed"], recipe["coverage"], recipe["classes"], *names)
    return coverage_by_latin_square(recipe["seed"], recipe.get("compositions", 1.0), *names)


@lru_cache(maxsize=64)
def coverage_by_classes(seed: int, coverage: float, classes: int, animals: Names, textures: Names) -> Coverage:
    """Shuffle animals and textures into classes. The rank of an animal of class g in a texture of class h is (h - g)
    modulo their number. So two animals of one class are shown in the same textures."""
    ranks_shown = round_coverage(coverage, classes)
    if coverage < 1 and min(len(animals), len(textures)) < 2 * classes:
        raise UserError(
            f"{classes} classes need {2 * classes} animals and textures each, but the world has {len(animals)} and "
            f"{len(textures)}; lower classes, or take a world with more"
        )
    classes_of = [shuffled_classes(seed, kind, names, classes) for kind, names in (("a", animals), ("t", textures))]
    ranks = {(a, t): (h - g) % classes for (a, g), (t, h) in product(*(names.items() for names in classes_of))}
    return Coverage(*classes_of, ranks, ranks_shown)


@lru_cache(maxsize=64)
def coverage_by_latin_square(seed: int, share: float, animals: Names, textures: Names) -> Coverage:
    """Rank the compositions of a Latin square, whose rows are shuffled animals and whose columns are shuffled textures,
    by its diagonals. So all animals keep nearly the same number of textures, and all textures nearly the same number of
    animals. Raises if an animal or a texture would have none."""
    shuffled = [
        [names[i] for i in generator(seed, "objects", kind).permutation(len(names))]
        for kind, names in (("animals", animals), ("textures", textures))
    ]
    ranks = {composition: rank for rank, composition in enumerate(by_diagonals(*shuffled))}
    ranks_shown = round(share * len(ranks))
    lacking = {*animals, *textures}.difference(*list(ranks)[:ranks_shown])
    if lacking:
        raise UserError(
            f"compositions {share:g} leaves {ranks_shown} combinations of {len(animals)} animals and {len(textures)} "
            f"textures in train, and none with {min(lacking)}; raise it"
        )
    classes_of = ({name: i for i, name in enumerate(names)} for names in (animals, textures))
    return Coverage(*classes_of, {both: ranks[both] for both in product(animals, textures)}, ranks_shown)


def by_diagonals(animals: Sequence[str], textures: Sequence[str]) -> list[Composition]:
    """Return all compositions, diagonal by diagonal. Within a diagonal, each texture comes once before any comes
    again."""
    n, number = len(textures), len(animals)
    starts = [i * n // number for i in range(number)]
    turns = [starts[:i].count(start) for i, start in enumerate(starts)]
    rows = sorted(range(number), key=lambda i: (turns[i], starts[i]))
    return [(animals[i], textures[(starts[i] + diagonal) % n]) for diagonal in range(n) for i in rows]


def round_coverage(coverage: float, classes: int) -> int:
    """Return the number of ranks that train shows. Raises unless `coverage` is a multiple of 1 / `classes` above 0;
    three digits are enough (0.333 for 1/3)."""
    if not (ranks_shown := nearest_rank(coverage, classes)):
        allowed = ", ".join(f"{k / classes:.3g}" for k in range(1, classes + 1))
        raise UserError(f"coverage {coverage:g} is no multiple of 1/{classes}; choose {allowed}, or other classes")
    return ranks_shown


def nearest_rank(coverage: float, classes: int) -> int:
    """Return `coverage` as a number of ranks, or 0 if it isn't one to three digits."""
    shown = round(coverage * classes)
    return shown if abs(coverage - shown / classes) <= 0.0011 else 0


def shuffled_classes(seed: int, kind: str, names: Sequence[str], classes: int) -> dict[str, int]:
    """Draw a class for each name, in the order of `names`. The sizes of classes differ by at most one."""
    place = np.argsort(generator(seed, "classes", kind).permutation(len(names)))
    return {name: int(spot) % classes for name, spot in zip(names, place, strict=True)}

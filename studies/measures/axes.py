"""What the axes of embeddings mean: z[view, p, q, ...] is the embedding of a scene in a view, p an ordered pair of
animals (left, right), q an ordered pair of different textures (of the left, of the right)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int, Num, Shaped

from menagerie.envs.core.errors import UserError


@dataclass(frozen=True, eq=False)
class ProbeAxes:
    """The ordered pairs of a probe set, each in both orders. Animals and textures are numbers from 0."""

    animals: Int[np.ndarray, "p 2"]
    textures: Int[np.ndarray, "q 2"]
    backgrounds: Int[np.ndarray, "v p q"]
    """The number of each scene's background, drawn anew for each view. A scene, its swap and its mirror share it."""

    @property
    def kinds(self) -> tuple[int, int]:
        """How many animals and textures there are."""
        return int(self.animals.max()) + 1, int(self.textures.max()) + 1

    @cached_property
    def swaps(self) -> Int[np.ndarray, " q"]:
        """For each ordered pair of textures, the number of the pair in the other order."""
        return reversed_numbers(self.textures)

    @cached_property
    def mirrors(self) -> Int[np.ndarray, " p"]:
        """For each ordered pair of animals, the number of the pair in the other order."""
        return reversed_numbers(self.animals)

    @cached_property
    def groups(self) -> Int[np.ndarray, " p"]:
        """For each ordered pair of animals, the number of the unordered pair. Folds hold out whole unordered pairs, so
        that all views of a scene, its swap and its mirror are in the same fold: random splits of scenes would leak."""
        return np.unique(np.sort(self.animals, 1), axis=0, return_inverse=True)[1].reshape(-1)

    @cached_property
    def half(self) -> Int[np.ndarray, " h"]:
        """For each unordered pair of textures, the number of one of its two orders."""
        return np.flatnonzero(self.textures[:, 0] < self.textures[:, 1])

    def repeated(self, times: int) -> "ProbeAxes":
        """Return the axes of embeddings whose views are all views of these axes, several times."""
        return ProbeAxes(self.animals, self.textures, np.concatenate([self.backgrounds] * times))

    def swap_differences(self, z: Float[np.ndarray, "v p q d"]) -> Float[np.ndarray, "v p h d"]:
        """Return D, the embedding of each scene minus that of its swap, for one order of each pair of textures."""
        return z[:, :, self.half] - z[:, :, self.swaps[self.half]]

    def folds(self, count: int) -> Int[np.ndarray, " p"]:
        """Return the number of a fold for each ordered pair of animals; both orders are in the same fold."""
        number = int(self.groups.max()) + 1
        if number < count:
            raise UserError(f"{count} folds need {count} pairs of animals, and the probe set has {number}")
        return (np.random.default_rng(0).permutation(number) % count)[self.groups]

    def check(self, embeddings: Num[np.ndarray, "v p q *rest"], least: int = 1) -> None:
        """Raise `UserError` unless embeddings fit these axes, are finite, and have at least `least` views."""
        if embeddings.shape[:3] != (shape := self.backgrounds.shape):
            raise UserError(
                f"embeddings {embeddings.shape} don't fit the probe set's (views, animal pairs, texture pairs) {shape}"
            )
        if len(embeddings) < least:
            raise UserError(f"embeddings of {least} views are needed, not of {len(embeddings)}")
        if not np.isfinite(embeddings).all():
            raise UserError("an embedding of the probe set isn't finite")


def reversed_numbers(pairs: Int[np.ndarray, "n 2"]) -> Int[np.ndarray, " n"]:
    """Return, for each ordered pair, the number of the pair in the other order."""
    number = {(one, two): k for k, (one, two) in enumerate(pairs.tolist())}
    return np.array([number[two, one] for one, two in pairs.tolist()])


def axes_of(
    animals: Shaped[np.ndarray, "n 2"],
    textures: Shaped[np.ndarray, "n 2"],
    views: Shaped[np.ndarray, " n"],
    backgrounds: Shaped[np.ndarray, " n"],
) -> tuple[ProbeAxes, Int[np.ndarray, "v p q"]]:
    """Return the axes of a list of scenes, and `numbers`, the place in the list of the scene at each (view, p, q): for
    embeddings in the list's order, `embeddings[numbers]` is z[view, p, q, ...]. Animals, textures, views and
    backgrounds are names or numbers.

    Raises `UserError` unless each view holds each ordered pair of animals with each one of textures once.
    """
    named = (views, backgrounds, animals, textures)
    view, background, animal, texture = (np.unique(names, return_inverse=True)[1].reshape(-1) for names in named)
    pairs, p = np.unique(animal.reshape(-1, 2), axis=0, return_inverse=True)
    bags, q = np.unique(texture.reshape(-1, 2), axis=0, return_inverse=True)
    shape = (int(view.max()) + 1, len(pairs), len(bags))
    place = np.ravel_multi_index((view, p.reshape(-1), q.reshape(-1)), shape)
    full = all(len(its) == (n := its.max() + 1) * (n - 1) > 0 for its in (pairs, bags))
    if not full or not np.array_equal(np.sort(place), np.arange(np.prod(shape))):
        parts = f"{shape[0]} views, {shape[1]} ordered pairs of animals and {shape[2]} of textures"
        raise UserError(f"a probe set of {parts} has each scene once, and there are {len(place)} scenes")
    numbers = np.argsort(place).reshape(shape)
    return ProbeAxes(pairs, bags, background[numbers]), numbers


def composition_means(
    embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes, kept: Bool[np.ndarray, " p"] | None = None
) -> Num[np.ndarray, "2 a t d"]:
    """Return the mean embedding of the scenes with each composition (animal, texture) in each place, left and right,
    over all views. Only kept pairs of animals count. Raises unless these have each animal in both places."""
    chosen = np.ones(len(axes.animals), bool) if kept is None else kept
    mean, means = embeddings.mean(0), np.zeros((2, *axes.kinds, embeddings.shape[-1]), embeddings.dtype)
    for place, animal in np.ndindex(2, axes.kinds[0]):
        of_animal = mean[chosen & (axes.animals[:, place] == animal)].astype(float)
        if not len(of_animal):
            raise UserError(
                "the probe set is too small: without held-out scenes, an animal is never in one of the places"
            )
        for texture in range(axes.kinds[1]):
            means[place, animal, texture] = of_animal[:, axes.textures[:, place] == texture].mean((0, 1))
    return means

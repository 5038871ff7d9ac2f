"""Draws multi-object scenes from shuffled queues of compositions, places, backgrounds and views, so that each is
equally frequent.

An item that doesn't fit a scene waits for the next one. A queue is shuffled again once none of its waiting items fits.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np

from menagerie.envs.layouts import Layout
from menagerie.envs.scene import Object, Scene
from menagerie.envs.world import World
from menagerie.generators.captions.contents import exchanged_places
from menagerie.generators.coverage import Composition

Item = TypeVar("Item")
TRIES = 2000  # scenes drawn in vain, one after the other, after which there seems to be no further one


class NothingFits(Exception):
    """Raised if no item of a queue fits."""


class ShuffledQueue(Generic[Item]):
    """Items that are taken in a random order, again and again."""

    def __init__(self, items: Iterable[Item], random: np.random.Generator) -> None:
        self.items, self.random = list(items), random
        self.waiting: list[Item] = []

    def take(self, fits: Callable[[Item], bool] = lambda item: True) -> Item:
        """Take the first waiting item that fits. If there is none, shuffle all items, take the first that fits, and let
        the others wait. Raises `NothingFits` if none fits."""
        for i, item in enumerate(self.waiting):
            if fits(item):
                return self.waiting.pop(i)
        shuffled = [self.items[i] for i in self.random.permutation(len(self.items))]
        for i, item in enumerate(shuffled):
            if fits(item):
                self.waiting += [*shuffled[:i], *shuffled[i + 1 :]]
                return item
        raise NothingFits

    def take_different(self, number: int) -> list[Item]:
        """Take `number` different items, and return them in random order."""
        taken: list[Item] = []
        while len(taken) < number:
            taken.append(self.take(lambda item: item not in taken))
        return [taken[i] for i in self.random.permutation(number)]


class SceneSampler:
    """Draws scenes that all have the same number of objects."""

    def __init__(
        self,
        world: World,
        layout: Layout,
        objects: int,
        views: range,
        compositions: Iterable[Composition],
        random: np.random.Generator,
    ) -> None:
        """`compositions` are those of objects for which `sample` is given no composition."""
        self.world, self.objects, self.random = world, objects, random
        self.places = ShuffledQueue(layout.choices(objects), random)
        self.backgrounds, self.views = ShuffledQueue(world.backgrounds, random), ShuffledQueue(views, random)
        self.compositions = ShuffledQueue(compositions, random)

    def sample(self, chosen: Sequence[Composition] = ()) -> Scene:
        """Draw a scene. `chosen` are the compositions of the two objects whose textures a swap exchanges, and then of
        others. The remaining objects get compositions from the queue: new animals in new textures.

        Raises `NothingFits` if no composition of the queue fits beside those already chosen.
        """
        compositions = [*chosen]
        while len(compositions) < self.objects:
            compositions.append(
                self.compositions.take(lambda new: all(share_nothing(new, old) for old in compositions))
            )
        slots, background, view = self.places.take(), self.backgrounds.take(), self.views.take()
        order = self.random.permutation(len(slots)).tolist()
        if chosen:
            pair = exchanged_places(slots, background, view)
            order = [*sorted(pair, key=order.index), *(place for place in order if place not in pair)]
        sizes = self.sizes(animal for animal, _ in compositions)
        objects = (
            Object(*composition, slots[i], sizes.get(composition[0], ""))
            for composition, i in zip(compositions, order, strict=True)
        )
        return Scene(background, tuple(objects), view)

    def sizes(self, animals: Iterable[str]) -> dict[str, str]:
        """Draw a size for each animal; return {} in a world without sizes."""
        names = self.world.sizes
        return {animal: names[self.random.integers(len(names))] for animal in dict.fromkeys(animals)} if names else {}


def share_nothing(one: Composition, other: Composition) -> bool:
    """Whether two compositions share neither animal nor texture."""
    return one[0] != other[0] and one[1] != other[1]


def distinct_scenes(
    number: int, sample: Callable[[], Scene], fits: Callable[[Scene], bool], like: Callable[[Scene], Scene]
) -> list[Scene]:
    """Draw `number` different scenes that fit, or fewer if no more are found. Of a scene and the one that `like` makes
    of it, only one is taken."""
    found: dict[Scene, None] = {}
    vain = 0
    while len(found) < number and vain < TRIES:
        vain += 1
        try:
            scene = sample()
        except NothingFits:
            continue
        if scene not in found and like(scene) not in found and fits(scene):
            found[scene] = None
            vain = 0
    return list(found)

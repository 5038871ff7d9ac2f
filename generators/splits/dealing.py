"""Deals multi-object scenes from shuffled decks of compositions, places, backgrounds and views, to make each
equally frequent.

A card that doesn't fit a scene waits for the next one. A deck is shuffled again once none of its waiting cards fits.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np

from menagerie.envs.layouts import Layout
from menagerie.envs.scene import Object, Scene
from menagerie.envs.world import World
from menagerie.generators.captions.hard_negatives.swaps import exchanged_places
from menagerie.generators.coverage import Composition

Card = TypeVar("Card")
TRIES = 2000  # scenes dealt in vain, one after the other, after which there seems to be no further one


class NoCard(Exception):
    """Raised if no card of a deck fits."""


class Deck(Generic[Card]):
    """Cards that are dealt in a random order, again and again."""

    def __init__(self, cards: Iterable[Card], random: np.random.Generator) -> None:
        self.cards, self.random = list(cards), random
        self.waiting: list[Card] = []

    def deal(self, fits: Callable[[Card], bool] = lambda card: True) -> Card:
        """Take the first waiting card that fits. If there is none, shuffle all cards, take the first that fits, and let
        the others wait. Raises `NoCard` if none fits."""
        for i, card in enumerate(self.waiting):
            if fits(card):
                return self.waiting.pop(i)
        shuffled = [self.cards[i] for i in self.random.permutation(len(self.cards))]
        for i, card in enumerate(shuffled):
            if fits(card):
                self.waiting += [*shuffled[:i], *shuffled[i + 1 :]]
                return card
        raise NoCard


class Table:
    """Deals scenes that all have the same number of objects."""

    def __init__(
        self,
        world: World,
        layout: Layout,
        objects: int,
        views: range,
        compositions: Iterable[Composition],
        random: np.random.Generator,
    ) -> None:
        """`compositions` are dealt to objects for which `scene` is given no composition."""
        self.world, self.objects, self.random = world, objects, random
        self.places = Deck(layout.choices(objects), random)
        self.backgrounds, self.views = Deck(world.backgrounds, random), Deck(views, random)
        self.compositions = Deck(compositions, random)

    def scene(self, chosen: Sequence[Composition] = ()) -> Scene:
        """Deal a scene. `chosen` are the compositions of the two objects whose textures a swap exchanges, and then of
        others. The remaining objects get compositions from the deck: new animals in new textures.

        Raises `NoCard` if no composition of the deck fits beside those already chosen.
        """
        compositions = [*chosen]
        while len(compositions) < self.objects:
            compositions.append(
                self.compositions.deal(lambda composition: all(different(composition, other) for other in compositions))
            )
        slots, background, view = self.places.deal(), self.backgrounds.deal(), self.views.deal()
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


def different(one: Composition, other: Composition) -> bool:
    """Whether two compositions share neither animal nor texture."""
    return one[0] != other[0] and one[1] != other[1]


def collect(
    number: int, deal: Callable[[], Scene], fits: Callable[[Scene], bool], like: Callable[[Scene], Scene]
) -> list[Scene]:
    """Deal `number` different scenes that fit, or fewer if no more are found. Of a scene and the one that `like` makes
    of it, only one is taken."""
    found: dict[Scene, None] = {}
    vain = 0
    while len(found) < number and vain < TRIES:
        vain += 1
        try:
            scene = deal()
        except NoCard:
            continue
        if scene not in found and like(scene) not in found and fits(scene):
            found[scene] = None
            vain = 0
    return list(found)

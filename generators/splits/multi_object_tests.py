"""The tests of multi-object splits: how many objects their scenes have, and in which compositions."""

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from menagerie.envs.world import World
from menagerie.generators.captions.spec import SEARCH
from menagerie.generators.coverage import Composition, Coverage
from menagerie.generators.rules.rule import Rule
from menagerie.generators.splits.dealing import Deck, NoCard, different

Chooser = Callable[[], list[Composition]]
"""Chooses the compositions of a scene: those of the two exchanged objects, and perhaps of others."""


def objects_of(test: str) -> int:
    """Return the number of objects in a test's scenes, by the name of the test: of seen or unseen compositions, of a
    search, or of triplets."""
    kind, _, rest = test.partition("_")
    number = int(rest.rpartition("_")[2])
    return {SEARCH: number + 1, "triplets": 4}.get(kind, number)


def named_in(rules: Sequence[Rule], world: World) -> set[str]:
    """Return the animals and textures that the texts of rules name, by themselves or by sets."""
    known = {name: (name,) for name in (*world.animals, *world.textures)} | dict(world.sets)
    texts = " ".join(rule.text for rule in rules)
    found = [members for name, members in known.items() if re.search(rf"\b{re.escape(name)}\b", texts)]
    return {member for members in found for member in members}


def of_pairs(coverage: Coverage, tested: Sequence[Composition], random: np.random.Generator) -> Chooser:
    """Deal the compositions of two exchanged objects. Both are of `tested`, share neither animal nor texture, and are
    `Coverage.alike`, so the exchange makes no seen composition unseen, and no unseen composition seen."""
    deck = Deck(tested, random)
    return lambda: [one := deck.deal(), deck.deal(partial(goes_with, coverage, one))]


def goes_with(coverage: Coverage, one: Composition, composition: Composition) -> bool:
    return different(composition, one) and coverage.alike(composition, one)


def of_names(
    coverage: Coverage, tested: Sequence[Composition], names: set[str], random: np.random.Generator
) -> Chooser:
    """Deal the compositions of two exchanged objects with `names` more often.

    Each is dealt from the compositions of `tested` that have the most of `names`, the first with probability 3/4 and
    the other with probability 1/2; otherwise from all of `tested`."""
    most = max(len(names.intersection(composition)) for composition in tested)
    wanted = Deck([composition for composition in tested if len(names.intersection(composition)) == most], random)
    every = Deck(tested, random)

    def choose() -> list[Composition]:
        one = (wanted if random.random() < 0.75 else every).deal()
        other = wanted if random.random() < 0.5 else every
        return [one, other.deal(partial(goes_with, coverage, one))]

    return choose


def searched(
    coverage: Coverage, tested: Sequence[Composition], random: np.random.Generator, objects: int, conjunction: bool
) -> Chooser:
    """Choose compositions for scenes of a search: a target, such as a red cat, and an object with which it exchanges
    its texture, such as a white dog. With `conjunction`, the rest are by turns other red animals and cats in other
    textures; without, they share nothing with these two."""
    deal = of_pairs(coverage, tested, random)

    def choose() -> list[Composition]:
        taken, start = deal(), random.integers(2)
        target, other = taken
        for turn in range(objects - len(taken)):
            shared = 1 + int(start + turn) % 2 if conjunction else 0
            fitting = [composition for composition in tested if fits(composition, taken, target, other, shared)]
            if not fitting:
                raise NoCard
            taken.append(fitting[random.integers(len(fitting))])
        return taken

    return choose


def fits(
    composition: Composition, taken: Sequence[Composition], target: Composition, other: Composition, shared: int
) -> bool:
    """Return whether a composition may join a search, whose objects so far have the compositions `taken`.

    With the target it must share what `shared` says: 1 the texture alone, 2 the animal alone, 0 neither. Its animal
    (unless `shared` is 2) and its texture (unless `shared` is 1) must be new. It shares nothing with `other`."""
    wanted = (composition[0] == target[0], composition[1] == target[1]) == (shared == 2, shared == 1)
    return (
        wanted
        and different(composition, other)
        and all(
            (composition[0] != seen[0] or shared == 2) and (composition[1] != seen[1] or shared == 1) for seen in taken
        )
    )


def with_triplets(
    coverage: Coverage, tested: Sequence[Composition], random: np.random.Generator, triplets: int
) -> Chooser:
    """Choose compositions for scenes of four objects with 0, 1 or 2 triplets. A triplet is an object, another object
    with its animal and a third one with its texture (Campbell et al. 2024)."""
    deal = of_pairs(coverage, tested, random)

    def choose() -> list[Composition]:
        (animal, texture), (other_animal, other_texture) = both = deal()
        animals = [name for name in coverage.animals if name not in (animal, other_animal)]
        textures = [name for name in coverage.textures if name not in (texture, other_texture)]
        new_animal, new_texture = (names[random.integers(len(names))] for names in (animals, textures))
        rest = {
            1: [(animal, new_texture), (new_animal, texture)],  # the first exchanged object with both
            2: [(animal, new_texture), (other_animal, new_texture)],  # these two, each with the other and one exchanged
        }[triplets]
        if not all(coverage.seen(*composition) for composition in rest):
            raise NoCard
        return both + rest

    return choose if triplets else deal

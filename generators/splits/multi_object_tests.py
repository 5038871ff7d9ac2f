"""The tests of multi-object splits: how many objects their scenes have, and in which compositions."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from menagerie.envs.scene import Scene
from menagerie.envs.world import World
from menagerie.generators.captions.spec import SEARCH
from menagerie.generators.coverage import Composition, Coverage
from menagerie.generators.rules.rule import Rule
from menagerie.generators.splits.even_draws import NothingFits, ShuffledQueue, share_nothing

TRIPLETS = "triplets"  # starts the names of tests of triplets
IN_PAIRS = "_in_pairs_"  # within the names of tests whose objects are pairs that can exchange their textures
Chooser = Callable[[], list[Composition]]
"""Chooses the compositions of a scene: those of the two exchanged objects, and perhaps of others."""


def number_of_objects(test: str) -> int:
    """Return the number of objects in a test's scenes, by the name of the test: of seen or unseen compositions, of a
    search, or of triplets."""
    kind, _, rest = test.partition("_")
    number = int(rest.rpartition("_")[2])
    return {SEARCH: number + 1, TRIPLETS: 4}.get(kind, number)


def names_in_rules(rules: Sequence[Rule], world: World) -> set[str]:
    """Return the animals and textures that the texts of rules name, by themselves or by sets."""
    known = {name: (name,) for name in (*world.animals, *world.textures)} | dict(world.sets)
    texts = " ".join(rule.text for rule in rules)
    found = [members for name, members in known.items() if re.search(rf"\b{re.escape(name)}\b", texts)]
    return {member for members in found for member in members}


def choose_pairs(coverage: Coverage, tested: Sequence[Composition], random: np.random.Generator) -> Chooser:
    """Choose the compositions of two exchanged objects. Both are of `tested`, share neither animal nor texture, and are
    `Coverage.alike`, so the exchange makes no seen composition unseen, and no unseen composition seen."""
    queue = ShuffledQueue(tested, random)
    return lambda: [one := queue.take(), queue.take(partial(may_stand_beside, coverage, one))]


def may_stand_beside(coverage: Coverage, one: Composition, composition: Composition) -> bool:
    return share_nothing(composition, one) and coverage.alike(composition, one)


def choose_in_pairs(
    coverage: Coverage, tested: Sequence[Composition], random: np.random.Generator, objects: int
) -> Chooser:
    """Choose the compositions of an even number of objects, all of `tested`: pairs of one class of animals and one of
    textures, each pair of other classes. So every exchange within pairs keeps compositions seen, or unseen."""
    queue = ShuffledQueue(tested, random)

    def choose() -> list[Composition]:
        taken: list[Composition] = []
        for place in range(objects):
            taken.append(queue.take(partial(continues_pairs, coverage, taken, place % 2 == 0)))
        return taken

    return choose


def continues_pairs(coverage: Coverage, taken: Sequence[Composition], whole: bool, new: Composition) -> bool:
    """Whether a composition may come next in pairs: of the classes of the last one, or of new ones if all are `whole`,
    and sharing nothing with any."""
    classes, known = coverage.classes_of(new), [coverage.classes_of(one) for one in taken]
    fits = classes not in known if whole else classes == known[-1]
    return fits and all(share_nothing(new, one) for one in taken)


def choose_named(
    coverage: Coverage, tested: Sequence[Composition], names: set[str], random: np.random.Generator
) -> Chooser:
    """Choose the compositions of two exchanged objects with `names` more often.

    Each is taken from the compositions of `tested` that have the most of `names`, the first with probability 3/4 and
    the other with probability 1/2; otherwise from all of `tested`."""
    most = max(len(names.intersection(composition)) for composition in tested)
    wanted = ShuffledQueue(
        [composition for composition in tested if len(names.intersection(composition)) == most], random
    )
    every = ShuffledQueue(tested, random)

    def choose() -> list[Composition]:
        one = (wanted if random.random() < 0.75 else every).take()
        other = wanted if random.random() < 0.5 else every
        return [one, other.take(partial(may_stand_beside, coverage, one))]

    return choose


def choose_search(
    coverage: Coverage, tested: Sequence[Composition], random: np.random.Generator, objects: int, conjunction: bool
) -> Chooser:
    """Choose compositions for scenes of a search: a target, such as a red cat, and an object with which it exchanges
    its texture, such as a white dog. With `conjunction`, the rest are by turns other red animals and cats in other
    textures; without, they share nothing with these two."""
    pair = choose_pairs(coverage, tested, random)

    def choose() -> list[Composition]:
        taken, start = pair(), random.integers(2)
        (target_animal, target_texture), _ = taken
        for turn in range(objects - len(taken)):
            shared = ("texture", "animal")[int(start + turn) % 2] if conjunction else ""
            animals, textures = map(set, zip(*taken, strict=True))
            fitting = [
                (animal, texture)
                for animal, texture in tested
                if (animal == target_animal if shared == "animal" else animal not in animals)
                and (texture == target_texture if shared == "texture" else texture not in textures)
            ]
            if not fitting:
                raise NothingFits
            taken.append(fitting[random.integers(len(fitting))])
        return taken

    return choose


def choose_triplets(
    coverage: Coverage, tested: Sequence[Composition], random: np.random.Generator, triplets: int
) -> Chooser:
    """Choose compositions for scenes of four objects with 0, 1 or 2 triplets. A triplet is an object, another object
    with its animal and a third one with its texture (Campbell et al. 2024)."""
    pair = choose_pairs(coverage, tested, random)

    def choose() -> list[Composition]:
        (animal, texture), (other_animal, other_texture) = both = pair()
        animals = [name for name in coverage.animals if name not in (animal, other_animal)]
        textures = [name for name in coverage.textures if name not in (texture, other_texture)]
        new_animal, new_texture = (names[random.integers(len(names))] for names in (animals, textures))
        rest = {
            1: [(animal, new_texture), (new_animal, texture)],  # the first exchanged object with both
            2: [(animal, new_texture), (other_animal, new_texture)],  # these two, each with the other and one exchanged
        }[triplets]
        if not all(coverage.seen(*composition) for composition in rest):
            raise NothingFits
        return both + rest

    return choose if triplets else pair


def shares_what_test_says(subset: str, scene: Scene) -> bool:
    """Whether a scene has as many objects as its test says, and these share what it says: no animal and no texture, or
    as many as in a conjunction search or in triplets."""
    kind, _, number = subset.rpartition("_")
    tested = number.isdigit()
    compositions = [obj[:2] for obj in scene.objects]
    animals, textures = (Counter(names) for names in zip(*compositions, strict=True))
    most = animals.most_common(1)[0][1], textures.most_common(1)[0][1]
    if tested and len(compositions) != number_of_objects(subset):
        return False
    if tested and kind == TRIPLETS:
        shared = sum((animals[animal] - 1) * (textures[texture] - 1) for animal, texture in compositions)
        return shared == int(number) and len(set(compositions)) == len(compositions)
    if not tested or kind != f"{SEARCH}_conjunction":
        return most == (1, 1)
    # k - 1 distractors share the target's animal or texture, half of them each, and nothing with one another.
    sharing = most[0] - 1, most[1] - 1
    repeated = (sum(n > 1 for n in names.values()) for names in (animals, textures))
    return sum(sharing) == int(number) - 1 and abs(sharing[0] - sharing[1]) <= 1 and max(repeated) <= 1

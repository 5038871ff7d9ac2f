"""The scenes that each test could have been drawn from, derived anew from the file's training scenes, vocabulary and
recipe.

A stratum is all scenes of one animal pair (in one relation), or of one animal to be counted. The strata of some tests
follow from train: its pairs with textures exchanged, its orders reversed. For pairs that train doesn't show, the recipe
fixes only their number: the pairs that the test shows are known strata, the others are hidden strata.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, combinations, permutations, product
from typing import NamedTuple

from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import COUNTING, SLOTS_OF
from menagerie.generators.audit.findings import (
    animal_pair,
    bare,
    leave_any,
    rules_for,
    rules_of,
    shown_objects,
    world_of,
)
from menagerie.generators.captions.hard_negatives.swaps import swap_textures
from menagerie.generators.rules.hold_out import HELD_OUT, matched
from menagerie.generators.storage.split_file import Split

Stratum = Hashable
Strata = dict[Stratum, list[Scene]]
OBJECT_TESTS = {"one_unseen_object": 1, "two_unseen_objects": 2}
Textures = tuple[str, ...]  # one for each animal of a pair, whose animals are in alphabetical order


class Drawn(NamedTuple):
    """Records of a test, and the scenes that they could have been drawn from; all without the draws made for each scene
    (`findings.bare`)."""

    name: str
    scenes: list[tuple[Scene, int]]  # each with its view
    most: int  # largest number of records
    strata: Strata  # each has at least one scene; scenes are in one view
    hidden: Sequence[int] = ()  # least number of scenes in each hidden stratum
    most_hidden: Sequence[int] = ()  # ... and the greatest


def stratum_of(scene: Scene) -> Stratum:
    """The relation and animal pair of a scene, or the animal that is counted."""
    return (scene.relation, animal_pair(scene)) if scene.relation else scene.things[0].animal


def candidates(split: Split) -> Iterator[Drawn]:
    """Yield, for each test and for validation, its records and the scenes that they could have been drawn from."""
    yield from OF_KIND.get(split.recipe["kind"], lambda split: ())(split)
    for name in split.subsets:
        if name.startswith(HELD_OUT) and (rules := rules_for(split, name)):
            yield held_out(split, name, rules)


def records_of(split: Split, name: str, relation: str | None = None) -> list[tuple[Scene, int]]:
    """The scenes of a subset, or only those in one relation, each with its view but without the draws made for it
    (`findings.bare`)."""
    sizes = name.startswith(HELD_OUT)
    scenes = (scene for scene in split.subsets[name].scenes if relation in (None, scene.relation))
    return [(bare(scene, sizes), scene.view) for scene in scenes]


def drawn(split: Split, name: str, strata: Strata) -> Drawn:
    """The records of a subset, drawn from those scenes of these strata that no hold-out rule matches and that have no
    unseen object."""
    return Drawn(name, records_of(split, name), split.recipe["test_scenes"], left(split, with_unseen(split, strata, 0)))


def left(split: Split, strata: Strata) -> Strata:
    """Remove the scenes that hold-out rules match, and the strata that have no scene left."""
    if rules_of(split):
        strata = {key: [scene for scene in scenes if leave_any(split, [scene])] for key, scenes in strata.items()}
    return {key: scenes for key, scenes in strata.items() if scenes}


def with_unseen(split: Split, strata: Strata, number: int) -> Strata:
    """Keep the scenes with `number` objects that train doesn't show, counted in the scene or in its swap, whichever has
    more; all scenes if the recipe holds no objects out."""
    shown = shown_objects(split)
    if shown is None:
        return strata

    def unseen(scene: Scene) -> int:
        (one, other), swap = scene.things, swap_textures(scene).things
        return max(sum(thing[:2] not in shown for thing in things) for things in ((one, other), swap))

    return {key: [scene for scene in scenes if unseen(scene) == number] for key, scenes in strata.items()}


def all_pairs(split: Split, relation: str) -> list[Stratum]:
    """All pairs of a world's animals in a relation."""
    return [(relation, frozenset(pair)) for pair in combinations(split.vocabulary.animals, 2)]


def set_apart(share: float, total: int) -> int:
    """The number of animals or pairs that a share of `total` sets apart: rounded, at least 1 unless the share is 0."""
    return max(round(share * total), 1) if share else 0


def scenes_of(
    split: Split, stratum: Stratum, textures: Iterable[Textures], orders: Iterable[Sequence[str]] = ()
) -> list[Scene]:
    """All scenes of a pair in each of `textures`, on all backgrounds, in each of `orders` (default: both)."""
    relation, pair = stratum
    animals, slots = sorted(pair), SLOTS_OF[relation]
    every = product(split.vocabulary.backgrounds, list(orders) or list(permutations(animals)), list(textures))
    return [
        Scene(background, tuple(Thing(one, worn[animals.index(one)], slots[i]) for i, one in enumerate(order)))
        for background, order, worn in every
    ]


def different(split: Split) -> list[Textures]:
    """All ordered pairs of two textures."""
    return list(permutations(split.vocabulary.textures, 2))


def unusable(split: Split, relation: str, textures: Iterable[Textures]) -> int:
    """The number of pairs for which the hold-out rules, or objects held out, leave no scene in a relation and these
    textures."""
    shown = shown_objects(split)
    pairs = all_pairs(split, relation) if rules_of(split) or shown is not None else []

    def usable(pair: Stratum) -> list[Scene]:
        scenes = scenes_of(split, pair, textures)
        return [s for s in scenes if shown is None or all(thing[:2] in shown for thing in s.things)]

    return sum(not leave_any(split, usable(pair)) for pair in pairs)


def unseen(split: Split, name: str, share: str, relation: str, textures: list[Textures], most: int) -> Drawn:
    """The records of a subset, drawn from pairs that the recipe's field `share` sets apart and train never shows."""
    total, records = all_pairs(split, relation), records_of(split, name, relation)
    seen = dict.fromkeys(stratum_of(scene) for scene, _ in records)
    elsewhere = [subset for subset in ("train", "validation") if subset != name]
    others = {stratum_of(scene) for subset in elsewhere for scene in split.subsets[subset].scenes}
    apart = set_apart(split.recipe[share], len(total))
    number = max(apart - len(seen), 0)
    every = partial(scenes_of, split, textures=textures)
    if not number:
        sizes = []
    elif rules_of(split) or shown_objects(split) is not None:
        free = (stratum for stratum in total if stratum not in seen and stratum not in others)
        sizes = sorted(len(left(split, with_unseen(split, {0: every(stratum)}, 0)).get(0, ())) for stratum in free)
    else:
        sizes = [len(every(total[0]))] * number
    hidden, most_hidden = sizes[:number], sizes[-number:] if number else []
    # If the test shows more pairs than the share sets apart, the surplus can't belong to it.
    strata = left(split, with_unseen(split, {stratum: every(stratum) for stratum in list(seen)[:apart]}, 0))
    return Drawn(name, records, most, strata, list(filter(None, hidden)), list(filter(None, most_hidden)))


def shown_textures(scene: Scene) -> Textures:
    """The textures of two things, in the alphabetical order of their animals."""
    return tuple(thing.texture for thing in sorted(scene.things, key=lambda thing: thing.animal))


def assignments(split: Split) -> dict[Stratum, list[Textures]]:
    """For each pair in train, the textures in which train shows it."""
    shown: dict[Stratum, dict[Textures, None]] = {}
    for scene in split.subsets["train"].scenes:
        if animal_pair(scene):
            shown.setdefault(stratum_of(scene), {})[shown_textures(scene)] = None
    return {pair: list(textures) for pair, textures in shown.items()}


def of_binding(split: Split) -> Iterator[Drawn]:
    """The tests of a binding split. They show training pairs in textures of train or in others, or other pairs."""
    shown, every = assignments(split), different(split)
    tested = {
        "seen_pairs": {pair: [worn[0][::-1]] for pair, worn in shown.items() if len(worn) == 1},
        "different_bag": {pair: [both for both in every if set(both) != set(worn[0])] for pair, worn in shown.items()},
        "train_pairs": {pair: worn for pair, worn in shown.items() if len(worn) > 1},
    }
    for name, textures in tested.items():
        yield drawn(split, name, {pair: scenes_of(split, pair, worn) for pair, worn in textures.items()})
    for name, share in {"unseen_pairs": "reserve", "validation": "validation"}.items():
        yield unseen(split, name, share, "left/right", every, split.recipe["test_scenes"])
    if shown_objects(split) is not None:
        for name, number in OBJECT_TESTS.items():
            yield of_objects(split, name, number)


def of_objects(split: Split, name: str, number: int) -> Drawn:
    """The records of a test of unseen objects, drawn from the scenes of all pairs but validation's that have `number`
    of them."""
    records, total = records_of(split, name), all_pairs(split, "left/right")
    seen = {stratum_of(scene) for scene, _ in records}
    apart = {stratum_of(scene) for scene in split.subsets["validation"].scenes}
    every = {pair: scenes_of(split, pair, different(split)) for pair in total if pair not in apart}
    tested = {pair: scenes for pair, scenes in with_unseen(split, every, number).items() if scenes}
    # Of some pairs of validation objects leave no scene, so that the file doesn't tell them from others.
    whole = len(apart) == set_apart(split.recipe["validation"], len(total))
    strata = {pair: scenes for pair, scenes in tested.items() if whole or pair in seen}
    most_hidden = [len(scenes) for pair, scenes in tested.items() if not (whole or pair in seen)]
    return Drawn(name, records, split.recipe["test_scenes"], strata, (), most_hidden)


def orders_of(split: Split) -> dict[Stratum, list[tuple[str, ...]]]:
    """For each pair in train, the orders in which train shows it."""
    shown: dict[Stratum, dict[tuple[str, ...], None]] = {}
    for scene in split.subsets["train"].scenes:
        if animal_pair(scene):
            shown.setdefault(stratum_of(scene), {})[tuple(thing.animal for thing in scene.things)] = None
    return {pair: list(orders) for pair, orders in shown.items()}


def of_spatial(split: Split) -> Iterator[Drawn]:
    """The tests of a spatial split: for each relation, seen and unseen orders, then pairs that train lacks."""
    shown, relations = orders_of(split), split.recipe["relations"]
    every = list(product(split.vocabulary.textures, repeat=2))
    for relation in relations:
        here = {pair: orders for pair, orders in shown.items() if pair[0] == relation}
        tested = {
            "unseen_order": {pair: [one[::-1]] for pair, (one, *others) in here.items() if not others},
            "seen_order": here,
        }
        for kind, orders in tested.items():
            if (name := f"{relation.replace('/', '_')}_{kind}") in split.subsets:
                yield drawn(split, name, {pair: scenes_of(split, pair, every, some) for pair, some in orders.items()})
        most = split.recipe["test_scenes"]
        yield unseen(split, f"{relation.replace('/', '_')}_unseen_pairs", "reserve", relation, every, most)
        yield unseen(split, "validation", "validation", relation, every, -(-most // len(relations)))


def of_counting(split: Split) -> Iterator[Drawn]:
    """The tests of a counting split. They show one to four copies of an animal that train shows in several copies, or
    of one set apart."""
    v = split.vocabulary
    counted = {scene.things[0].animal for scene in split.subsets["train"].scenes if len(scene.things) > 1}

    def every(animal: str) -> list[Scene]:
        numbers = range(1, len(COUNTING) + 1)
        return [
            Scene(background, tuple(Thing(animal, texture, slot) for slot in COUNTING[:number]))
            for background, texture, number in product(v.backgrounds, v.textures, numbers)
        ]

    yield drawn(split, "seen_counts", {animal: every(animal) for animal in counted})
    for name, share in {"unseen_counts": "reserve", "validation": "validation"}.items():
        records = records_of(split, name)
        seen = list(dict.fromkeys(stratum_of(scene) for scene, _ in records))
        apart = set_apart(split.recipe[share], len(v.animals))
        sizes = [len(every(v.animals[0]))] * max(apart - len(seen), 0)
        strata = {animal: every(animal) for animal in seen[:apart]}
        yield Drawn(name, records, split.recipe["test_scenes"], strata, sizes, sizes)


def of_dependence(split: Split) -> Iterator[Drawn]:
    """The tests of a dependence split. In each test an animal has only one texture. Tests show training pairs and other
    pairs; the two animals of a pair have different textures."""
    trained, pairs = set(assignments(split)), all_pairs(split, "left/right")
    for name in ("seen_textures", "unseen_textures", "validation"):
        records = records_of(split, name)
        worn = worn_by_train(split, main=name == "seen_textures")
        worn |= {thing.animal: thing.texture for scene, _ in records for thing in scene.things}
        seen = {stratum_of(scene) for scene, _ in records}
        if name == "validation":
            known, number = seen, set_apart(split.recipe["validation"], len(pairs)) - len(seen)
        else:
            dressed = {pair for pair in trained if len({worn.get(animal, animal) for animal in pair[1]}) == 2}
            known = seen | {pair for pair in dressed if pair[1] <= worn.keys()}
            number = len(dressed - known) + set_apart(split.recipe["reserve"], len(pairs)) - len(seen - trained)
        strata = {pair: scenes_of(split, pair, [tuple(worn[animal] for animal in sorted(pair[1]))]) for pair in known}
        most_hidden = [2 * len(split.vocabulary.backgrounds)] * max(number, 0)
        yield Drawn(name, records, split.recipe["test_scenes"], strata, (), most_hidden)


def worn_by_train(split: Split, main: bool) -> dict[str, str]:
    """Map each animal to the texture that train shows most often on it or, without `main`, to the only texture that
    train never shows on it. Animals for which train doesn't determine that texture are left out."""
    things = (thing for scene in split.subsets["train"].scenes for thing in scene.things)
    shown, worn = Counter((thing.animal, thing.texture) for thing in things), {}
    for animal in split.vocabulary.animals:
        counts = sorted((shown[animal, texture], texture) for texture in split.vocabulary.textures)
        if main and counts[-1][0] > counts[-2][0] + 1:  # shares are rounded to whole numbers
            worn[animal] = counts[-1][1]
        if not main and counts[0][0] == 0 < counts[1][0]:
            worn[animal] = counts[0][1]
    return worn


def held_out(split: Split, name: str, rules: Sequence) -> Drawn:
    """The records of a `held_out` test, drawn from all scenes that the rules match, except validation's pairs; each
    size counts as a scene of its own."""
    spatial, world = split.recipe["kind"] == "spatial", world_of(split.vocabulary)
    relations = split.recipe["relations"] if spatial else ("left/right",)
    textures = list(product(split.vocabulary.textures, repeat=2)) if spatial else different(split)
    records = records_of(split, name)
    seen = {stratum_of(scene) for scene, _ in records}
    apart = {stratum_of(scene) for scene in split.subsets["validation"].scenes}

    def every(stratum: Stratum) -> list[Scene]:
        sized = chain.from_iterable(map(world.in_sizes, scenes_of(split, stratum, textures)))
        return [scene for scene in sized if matched(rules, scene)]

    strata, most_hidden = {}, []
    for relation in relations:
        total = all_pairs(split, relation)
        tested = {stratum: found for stratum in total if stratum not in apart and (found := every(stratum))}
        # If validation shows only some of its pairs, the others can't be excluded for certain.
        whole = len(apart & set(total)) == set_apart(split.recipe["validation"], len(total))
        strata |= {stratum: scenes for stratum, scenes in tested.items() if whole or stratum in seen}
        most_hidden += [len(scenes) for stratum, scenes in tested.items() if not (whole or stratum in seen)]
    return Drawn(name, records, split.recipe["test_scenes"], strata, (), most_hidden)


OF_KIND = {"binding": of_binding, "spatial": of_spatial, "counting": of_counting, "dependence": of_dependence}

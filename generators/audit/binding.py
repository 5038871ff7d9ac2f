"""Checks of attribute-binding splits: pairs and their assignments of textures."""

from collections.abc import Iterator
from itertools import combinations, permutations, product

from menagerie.envs.scene import Scene, Thing
from menagerie.generators.audit.findings import Finding, animal_pair, first, leave_any, nearest, rules_of, trainable
from menagerie.generators.storage.split_file import Records, Split


def pairs_of(records: Records) -> set[frozenset[str]]:
    """The distinct animal pairs of a subset."""
    return {pair for scene in records.scenes if (pair := animal_pair(scene))}


def check_pairs(split: Split) -> Iterator[Finding]:
    """Animal pairs of `unseen_pairs` and validation are not in train, nor in each other."""
    seen = pairs_of(split.subsets["train"])
    held = {name: pairs_of(split.subsets[name]) for name in ("unseen_pairs", "validation")}
    for name, pairs in held.items():
        shared = sorted(map(sorted, pairs & seen))
        yield Finding(f"no animal pair of {name} is in train", not shared, f"{shared[:1] or f'{len(pairs)} pairs'}")
    shared = sorted(map(sorted, held["unseen_pairs"] & held["validation"]))
    yield Finding("unseen_pairs and validation share no animal pair", not shared, f"{shared[:1] or ''}")


def textured(scene: Scene) -> frozenset[tuple[str, str]]:
    """The (animal, texture) combinations of a scene, without their slots."""
    return frozenset((thing.animal, thing.texture) for thing in scene.things)


def swapped_textures(scene: Scene) -> frozenset[tuple[str, str]]:
    """The combinations of a scene of two with its textures exchanged."""
    one, other = scene.things
    return frozenset({(one.animal, other.texture), (other.animal, one.texture)})


def check_bindings(split: Split) -> Iterator[Finding]:
    """Test bindings of training pairs are not in train; those of `train_pairs` are."""
    train = {textured(scene) for scene in split.subsets["train"].scenes}
    for name in ("seen_pairs", "different_bag"):
        holds, detail = first(scene.key for scene in split.subsets[name].scenes if textured(scene) in train)
        yield Finding(f"no textured pair of {name} is in train", holds, detail)
    strange = (scene.key for scene in split.subsets["seen_pairs"].scenes if swapped_textures(scene) not in train)
    yield Finding("every textured pair of seen_pairs is in train with its textures swapped", *first(strange))
    met = pairs_of(split.subsets["train"])
    strange = (scene.key for scene in split.subsets["different_bag"].scenes if animal_pair(scene) not in met)
    yield Finding("every animal pair of different_bag is in train", *first(strange))
    holds, detail = first(scene.key for scene in split.subsets["train_pairs"].scenes if textured(scene) not in train)
    yield Finding("every textured pair of train_pairs is in train", holds, detail)


def check_fractions(split: Split) -> Iterator[Finding]:
    """The realised fractions are the nearest to the requested ones; each pair has one assignment, or also its swap."""
    assignments: dict[frozenset[str], set] = {}
    for scene in split.subsets["train"].scenes:
        if pair := animal_pair(scene):
            assignments.setdefault(pair, set()).add(textured(scene))
    totals = trainable(split, unusable(split))
    swapped = [pair for pair, textured_pairs in assignments.items() if len(textured_pairs) == 2]
    yield nearest("training pairs", len(assignments), split.recipe["pairs"], totals)
    fraction = split.recipe["hard_negatives"]
    yield nearest("pairs with hard negatives in train", len(swapped), fraction, [len(assignments)])
    odd = [sorted(pair) for pair, textured_pairs in assignments.items() if not sound_assignment(textured_pairs)]
    claim = "each training pair has one assignment of two different textures, or that and its swap"
    yield Finding(claim, not odd, f"first: {odd[0]}" if odd else "")


def unusable(split: Split) -> int:
    """Number of pairs of which the hold-out rules leave no scene with two different textures."""
    v = split.vocabulary
    if not rules_of(split):
        return 0
    scenes = {
        pair: (
            Scene(background, (Thing(left, one, "left"), Thing(right, other, "right")))
            for (left, right), (one, other), background in product(
                permutations(pair), permutations(v.textures, 2), v.backgrounds
            )
        )
        for pair in combinations(v.animals, 2)
    }
    return sum(not leave_any(split, its) for its in scenes.values())


def sound_assignment(textured_pairs: set[frozenset[tuple[str, str]]]) -> bool:
    """Whether the textured pairs of one animal pair are one assignment, or it and its swap."""
    one, *others = textured_pairs
    different = len({texture for _, texture in one}) == 2
    (a, texture_a), (b, texture_b) = one
    return different and others in ([], [frozenset({(a, texture_b), (b, texture_a)})])


CHECKS = (check_pairs, check_bindings, check_fractions)

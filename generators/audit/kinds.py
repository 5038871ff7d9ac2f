"""Checks of single kinds of splits: those that hold out pairs, compositions, textures or numbers of animals."""

from collections.abc import Iterable, Iterator, Sequence

from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Scene
from menagerie.envs.slots import COUNTING
from menagerie.generators.audit.findings import Finding, animal_pair, compositions_in, compositions_of, every, none
from menagerie.generators.captions.hard_negatives.swaps import swap_textures
from menagerie.generators.storage.split_file import Split

COMPOSITION_TESTS = {"one_unseen_composition": 1, "two_unseen_compositions": 2}


def pairs_of(split: Split, name: str) -> set[frozenset[str]]:
    """The distinct animal pairs of a subset."""
    return {pair for scene in split.subsets[name].scenes if (pair := animal_pair(scene))}


def texts(found: Iterable[Iterable[str]]) -> Iterator[str]:
    """Pairs of animals, or other tuples of names, as texts in order."""
    return map(" ".join, sorted(tuple(sorted(its) if isinstance(its, frozenset) else its) for its in found))


def check_pairs(split: Split) -> Iterator[Finding]:
    """Check that animal pairs of `unseen_pairs` and validation are not in train, nor shared by both."""
    seen, unseen, apart = (pairs_of(split, name) for name in ("train", "unseen_pairs", "validation"))
    yield none("no animal pair of unseen_pairs is in train", texts(unseen & seen))
    yield none("no animal pair of validation is in train", texts(apart & seen))
    yield none("unseen_pairs and validation share no animal pair", texts(unseen & apart))


def check_bindings(split: Split) -> Iterator[Finding]:
    """Check that tested bindings of training pairs are not in train, except those of `train_pairs`, which must be."""
    train, met = set(map(compositions_of, split.subsets["train"].scenes)), pairs_of(split, "train")
    old, other, same = (split.subsets[name].scenes for name in ("seen_pairs", "different_bag", "train_pairs"))
    yield every("no textured pair of seen_pairs is in train", old, lambda scene: compositions_of(scene) not in train)
    yield every(
        "no textured pair of different_bag is in train", other, lambda scene: compositions_of(scene) not in train
    )
    claim = "every textured pair of seen_pairs is in train with its textures swapped"
    yield every(claim, old, lambda scene: compositions_of(swap_textures(scene)) in train)
    yield every("every animal pair of different_bag is in train", other, lambda scene: animal_pair(scene) in met)
    yield every("every textured pair of train_pairs is in train", same, lambda scene: compositions_of(scene) in train)


def check_compositions(split: Split) -> Iterator[Finding]:
    """Check that scenes of tests and validation, or their swaps, have as many unseen compositions as their test's name
    says, or none. Check that tests of unseen compositions share no animal pair with validation."""
    if split.recipe.get("compositions", 1.0) == 1.0:
        return
    shown, apart = compositions_in(split, "train"), pairs_of(split, "validation")

    def unseen_in(scene: Scene) -> int:
        return max(sum(obj[:2] not in shown for obj in one.objects) for one in (scene, swap_textures(scene)))

    for name, records in split.subsets.items():
        if name != "train":
            number = COMPOSITION_TESTS.get(name, 0)
            claim = f"{number or 'no'} unseen compositions in scenes of {name}, or in their swaps"
            yield every(claim, records.scenes, lambda scene, number=number: unseen_in(scene) == number)
    tested = [scene for name in COMPOSITION_TESTS for scene in split.subsets[name].scenes]
    claim = "tests of unseen compositions share no animal pair with validation"
    yield every(claim, tested, lambda scene: animal_pair(scene) not in apart)


def check_painted(split: Split) -> Iterator[Finding]:
    """Check that train shows every animal in its textures of `seen_textures`, and never in those of `unseen_textures`
    and validation. Check that validation has pairs of its own."""
    train = compositions_in(split, "train")
    for name in ("unseen_textures", "validation"):
        yield none(f"no animal of {name} is in train in that texture", texts(compositions_in(split, name) & train))
    seen = compositions_in(split, "seen_textures")
    yield none("every animal of seen_textures is in train in that texture", texts(seen - train))
    others = set().union(*(pairs_of(split, name) for name in ("train", "seen_textures", "unseen_textures")))
    shared = texts(pairs_of(split, "validation") & others)
    yield none("no animal pair of validation is in train or a test", shared)


def orders_of(scenes: Sequence[Scene]) -> set[tuple[str, str, str]]:
    """The orders in the scenes of two objects: the relation, and the animals in its first and second slot."""
    pairs = (scene for scene in scenes if len(scene.objects) == 2)
    return {(scene.relation or "none", *(obj.animal for obj in scene.objects)) for scene in pairs}


def check_orders(split: Split) -> Iterator[Finding]:
    """Check that train shows seen orders, and unseen orders only reversed. Check that validation shares no animal
    pair with train, and tests of unseen pairs none with either, in the same relation if `unseen_under` is "own"."""
    under_all = split.recipe["unseen_under"] == "all"
    where = "in any relation" if under_all else "with its relation"

    def pair(order: tuple[str, str, str]) -> tuple[str, frozenset[str]]:
        return "" if under_all else order[0], frozenset(order[1:])

    def shared(name: str, orders: set[tuple[str, str, str]]) -> Iterator[str]:
        pairs = set(map(pair, orders))
        return texts(order for order in orders_of(split.subsets[name].scenes) if pair(order) in pairs)

    train, validation = (orders_of(split.subsets[name].scenes) for name in ("train", "validation"))
    for name, records in split.subsets.items():
        orders = orders_of(records.scenes)
        if name.endswith("unseen_order"):
            yield none(f"no order of {name} is in train", texts(orders & train))
            reversed_ = {(relation, other, one) for relation, one, other in orders}
            yield none(f"every order of {name} is in train reversed", texts(reversed_ - train))
        elif name.endswith("_seen_order"):
            yield none(f"every order of {name} is in train", texts(orders - train))
        elif name == "validation" or name.endswith("unseen_pairs"):
            yield none(f"no animal pair of {name} is in train {where}", shared(name, train))
        if name.endswith("unseen_pairs"):
            yield none(f"{name} and validation share no animal pair {where}", shared(name, validation))


def check_relations(split: Split) -> Iterator[Finding]:
    """Check that pairs are in the recipe's relations, in tests of one relation in that one, and captions state it."""
    for name, r in split.subsets.items():
        of_test = {relation for relation in RELATIONS if name.startswith(relation.replace("/", "_"))} or {*RELATIONS}
        allowed = of_test & set(split.recipe["relations"])
        pairs = [(s, graph) for s, graph in zip(r.scenes, r.graphs, strict=True) if len(s.objects) == 2]
        strange = (scene.key for scene, _ in pairs if scene.relation not in allowed)
        yield none(f"every pair of {name} is in a requested relation", strange)
        silent = (scene.key for scene, graph in pairs if len(graph.edges) != 1)
        yield none(f"every caption of a pair of {name} states its relation", silent)


def numbers_of(split: Split, name: str) -> set[tuple[str, int]]:
    """All (animal, number) that a subset shows."""
    return {(scene.objects[0].animal, len(scene.objects)) for scene in split.subsets[name].scenes}


def countable(scene: Scene) -> bool:
    """Whether all objects of a scene are alike and stand in slots for counting."""
    alike = len({obj._replace(slot="") for obj in scene.objects}) == 1
    return alike and {obj.slot for obj in scene.objects} <= set(COUNTING)


def check_counted(split: Split) -> Iterator[Finding]:
    """Check that each scene of a counting split shows one to four objects of one kind, in the slots for counting. Check
    that `unseen_counts` and validation share no animal, and that train shows their animals only alone. Check that train
    shows each animal of `seen_counts` in every number in which that test shows it."""
    for name, records in split.subsets.items():
        yield every(f"every scene of {name} shows one to four of one object", records.scenes, countable)
    train = numbers_of(split, "train")
    counted = {animal for animal, number in train if number > 1}
    unseen, apart = ({a for a, _ in numbers_of(split, name)} for name in ("unseen_counts", "validation"))
    yield none("no animal of unseen_counts is in train in numbers", sorted(unseen & counted))
    yield none("no animal of validation is in train in numbers", sorted(apart & counted))
    strange = (f"{number} of {animal}" for animal, number in sorted(numbers_of(split, "seen_counts") - train))
    yield none("every number of seen_counts is in train of that animal", strange)
    yield none("unseen_counts and validation share no animal", sorted(unseen & apart))

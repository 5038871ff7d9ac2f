"""Checks of the kinds of splits that hold out pairs of animals: binding, dependence and spatial."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from menagerie.envs.scene import Scene
from menagerie.envs.slots import SLOTS_OF
from menagerie.generators.audit.findings import Finding, animal_pair, cells_in, first
from menagerie.generators.captions.hard_negatives.swaps import swap_textures
from menagerie.generators.storage.split_file import Split


def pairs_of(split: Split, name: str) -> set[frozenset[str]]:
    """The distinct animal pairs of a subset."""
    return {pair for scene in split.subsets[name].scenes if (pair := animal_pair(scene))}


def names(pairs: set[frozenset[str]]) -> Iterator[str]:
    return (" and ".join(pair) for pair in sorted(map(sorted, pairs)))


def check_pairs(split: Split) -> Iterator[Finding]:
    """Check that animal pairs of `unseen_pairs` and validation are not in train, nor shared by both."""
    seen, unseen, apart = (pairs_of(split, name) for name in ("train", "unseen_pairs", "validation"))
    yield Finding("no animal pair of unseen_pairs is in train", *first(names(unseen & seen)))
    yield Finding("no animal pair of validation is in train", *first(names(apart & seen)))
    yield Finding("unseen_pairs and validation share no animal pair", *first(names(unseen & apart)))


def textured(scene: Scene) -> frozenset[tuple[str, str]]:
    """The (animal, texture) combinations of a scene, without their slots."""
    return frozenset((thing.animal, thing.texture) for thing in scene.things)


def check_bindings(split: Split) -> Iterator[Finding]:
    """Check that tested bindings of training pairs are not in train, except those of `train_pairs`, which must be."""
    train = {textured(scene) for scene in split.subsets["train"].scenes}
    for name in ("seen_pairs", "different_bag"):
        leaked = (scene.key for scene in split.subsets[name].scenes if textured(scene) in train)
        yield Finding(f"no textured pair of {name} is in train", *first(leaked))
    strange = (s.key for s in split.subsets["seen_pairs"].scenes if textured(swap_textures(s)) not in train)
    yield Finding("every textured pair of seen_pairs is in train with its textures swapped", *first(strange))
    met = pairs_of(split, "train")
    strange = (scene.key for scene in split.subsets["different_bag"].scenes if animal_pair(scene) not in met)
    yield Finding("every animal pair of different_bag is in train", *first(strange))
    strange = (scene.key for scene in split.subsets["train_pairs"].scenes if textured(scene) not in train)
    yield Finding("every textured pair of train_pairs is in train", *first(strange))


def check_painted(split: Split) -> Iterator[Finding]:
    """Check that train shows every animal in its textures of `seen_textures`, and never in those of `unseen_textures`
    and validation. Check that validation has pairs of its own."""
    train = cells_in(split, "train")
    for name in ("unseen_textures", "validation"):
        leaked = (f"{texture} {animal}" for animal, texture in sorted(cells_in(split, name) & train))
        yield Finding(f"no animal of {name} is in train in that texture", *first(leaked))
    strange = (f"{texture} {animal}" for animal, texture in sorted(cells_in(split, "seen_textures") - train))
    yield Finding("every animal of seen_textures is in train in that texture", *first(strange))
    others = set().union(*(pairs_of(split, name) for name in ("train", "seen_textures", "unseen_textures")))
    shared = names(pairs_of(split, "validation") & others)
    yield Finding("no animal pair of validation is in train or a test", *first(shared))


class Order(NamedTuple):
    """The animals in a relation's first and second slot."""

    relation: str
    first: str
    second: str

    @property
    def swapped(self) -> "Order":
        return self._replace(first=self.second, second=self.first)


def orders_of(scenes: Sequence[Scene]) -> set[Order]:
    """The orders in the scenes of two things."""
    pairs = (scene for scene in scenes if len(scene.things) == 2)
    return {Order(scene.relation, *(thing.animal for thing in scene.things)) for scene in pairs}


def check_orders(split: Split) -> Iterator[Finding]:
    """Check that train shows seen orders, and unseen orders only reversed. Check that validation shares no animal
    pair with train, and tests of unseen pairs none with either, in the same relation if `unseen_under` is "own"."""
    under_all = split.recipe["unseen_under"] == "all"
    where = "in any relation" if under_all else "with its relation"

    def shared(name: str, orders: set[Order]) -> Iterator[str]:
        pairs = {("" if under_all else relation, frozenset(both)) for relation, *both in orders}
        own = sorted(orders_of(split.subsets[name].scenes))
        return (" ".join(o) for o in own if ("" if under_all else o.relation, frozenset(o[1:])) in pairs)

    train, validation = (orders_of(split.subsets[name].scenes) for name in ("train", "validation"))
    for name, records in split.subsets.items():
        orders = orders_of(records.scenes)
        if name.endswith("unseen_order"):
            yield Finding(f"no order of {name} is in train", *first(map(str, orders & train)))
            strange = (" ".join(order) for order in sorted(orders) if order.swapped not in train)
            yield Finding(f"every order of {name} is in train reversed", *first(strange))
        elif name.endswith("_seen_order"):
            yield Finding(f"every order of {name} is in train", *first(map(str, orders - train)))
        elif name == "validation" or name.endswith("unseen_pairs"):
            yield Finding(f"no animal pair of {name} is in train {where}", *first(shared(name, train)))
        if name.endswith("unseen_pairs"):
            yield Finding(f"{name} and validation share no animal pair {where}", *first(shared(name, validation)))


def check_relations(split: Split) -> Iterator[Finding]:
    """Check that pairs are in the recipe's relations, in tests of one relation in that one, and captions state it."""
    for name, r in split.subsets.items():
        of_test = {relation for relation in SLOTS_OF if name.startswith(relation.replace("/", "_"))} or set(SLOTS_OF)
        allowed = of_test & set(split.recipe["relations"])
        pairs = [(s, graph) for s, graph in zip(r.scenes, r.graphs, strict=True) if len(s.things) == 2]
        strange = (scene.key for scene, _ in pairs if scene.relation not in allowed)
        yield Finding(f"every pair of {name} is in a requested relation", *first(strange))
        silent = (scene.key for scene, graph in pairs if len(graph.edges) != 1)
        yield Finding(f"every caption of a pair of {name} states its relation", *first(silent))

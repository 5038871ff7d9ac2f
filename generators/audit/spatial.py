"""Checks of spatial splits: orders of animals, for each relation separately."""

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import SLOTS_OF
from menagerie.generators.audit.findings import Finding, first, leave_any, nearest, rules_of, trainable
from menagerie.generators.storage.split_file import Split


class Order(NamedTuple):
    """The animals in a relation's first and second slot."""

    relation: str
    first: str
    second: str

    @property
    def swapped(self) -> "Order":
        """The reversed order."""
        return self._replace(first=self.second, second=self.first)

    @property
    def pair(self) -> tuple[str, frozenset[str]]:
        """The relation and both animals."""
        return self.relation, frozenset(self[1:])


def order_of(scene: Scene) -> Order | None:
    """The order of a scene of two; None for a single animal."""
    return Order(scene.relation, *(thing.animal for thing in scene.things)) if len(scene.things) == 2 else None


def orders_of(scenes: Sequence[Scene]) -> set[Order]:
    """All orders of `scenes`."""
    return {order for scene in scenes if (order := order_of(scene))}


def check_orders(split: Split) -> Iterator[Finding]:
    """Train shows unseen orders only reversed, and held-out pairs in no relation, or not in their own.

    Recipes of before there was a choice, in older files, draw them for each relation.
    """
    train = orders_of(split.subsets["train"].scenes)
    under_all = split.recipe.get("unseen_under", "own") == "all"
    where = "in any relation" if under_all else "with its relation"

    def held(order: Order) -> object:
        return order.pair[1] if under_all else order.pair

    trained = set(map(held, train))
    for name, records in split.subsets.items():
        orders = orders_of(records.scenes)
        if name.endswith("unseen_order"):
            leaked = (str(tuple(order)) for order in sorted(orders & train))
            yield Finding(f"no order of {name} is in train", *first(leaked))
            strange = (str(tuple(order)) for order in sorted(orders) if order.swapped not in train)
            yield Finding(f"every order of {name} is in train reversed", *first(strange))
        elif name.endswith("_seen_order"):
            strange = (str(tuple(order)) for order in sorted(orders - train))
            yield Finding(f"every order of {name} is in train", *first(strange))
        elif name == "validation" or name.endswith("unseen_pairs"):
            leaked = (str(tuple(order)) for order in sorted(orders) if held(order) in trained)
            yield Finding(f"no animal pair of {name} is in train {where}", *first(leaked))
    validation = set(map(held, orders_of(split.subsets["validation"].scenes)))
    for name in (name for name in split.subsets if name.endswith("unseen_pairs")):
        shared = (str(tuple(o)) for o in sorted(orders_of(split.subsets[name].scenes)) if held(o) in validation)
        yield Finding(f"{name} and validation share no animal pair {where}", *first(shared))


def check_relations(split: Split) -> Iterator[Finding]:
    """Scenes are in the recipe's relations, tests in their own, and captions state them."""
    relations = set(split.recipe["relations"])
    for name, r in split.subsets.items():
        own = {relation for relation in relations if name.startswith(relation.replace("/", "_"))} or relations
        pairs = [(scene, graph) for scene, graph in zip(r.scenes, r.graphs, strict=True) if len(scene.things) == 2]
        yield Finding(
            f"every pair of {name} is in a requested relation", *first(s.key for s, _ in pairs if s.relation not in own)
        )
        yield Finding(
            f"every caption of a pair of {name} states its relation", *first(s.key for s, g in pairs if not g.edges)
        )


def left_of(order: Order, split: Split) -> set[Scene]:
    """The scenes of an order, in one view and without sizes, that the rules leave in some sizes."""
    v = split.vocabulary
    slots = SLOTS_OF[order.relation]
    scenes = (
        Scene(background, (Thing(order.first, one, slots[0]), Thing(order.second, other, slots[1])))
        for background, one, other in product(v.backgrounds, v.textures, v.textures)
    )
    return {scene for scene in scenes if leave_any(split, [scene])}


def unusable(split: Split, relation: str) -> int:
    """Number of pairs of which the hold-out rules leave no scene in a relation."""
    if not rules_of(split):
        return 0
    both = (
        (Order(relation, *pair), Order(relation, *reversed(pair))) for pair in combinations(split.vocabulary.animals, 2)
    )
    return sum(not any(left_of(order, split) for order in orders) for orders in both)


def check_order_fractions(split: Split) -> Iterator[Finding]:
    """The realised fractions of each relation are the nearest to the requested ones."""
    train = orders_of(split.subsets["train"].scenes)
    for relation in split.recipe["relations"]:
        orders = {order for order in train if order.relation == relation}
        pairs = {order.pair for order in orders}
        totals = trainable(split, unusable(split, relation))
        yield nearest(f"training pairs, {relation}", len(pairs), split.recipe["pairs"], totals)
        swapped = len(orders) - len(pairs)
        yield nearest(f"pairs in both orders, {relation}", swapped, split.recipe["hard_negatives"], [len(pairs)])


def check_negatives(split: Split) -> Iterator[Finding]:
    """Every pair of train has a negative, also where its caption leaves out textures."""
    r = split.subsets["train"]
    lacking = (s.key for s, text in zip(r.scenes, r.negatives, strict=True) if len(s.things) == 2 and not text)
    yield Finding("every pair of train has a negative", *first(lacking))


CHECKS = (check_orders, check_relations, check_order_fractions, check_negatives)

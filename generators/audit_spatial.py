"""What the audit asks of spatial splits: orders of animals, apart for each relation."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envs.scene import Scene
from generators.audit_findings import Finding, first, held_out, nearest
from generators.split_file import Split


class Order(NamedTuple):
    """Who is in a relation's first slot, and who in its second."""

    relation: str
    first: str
    second: str

    @property
    def swapped(self) -> "Order":
        """The other way round."""
        return self._replace(first=self.second, second=self.first)

    @property
    def pair(self) -> tuple[str, frozenset[str]]:
        """The relation and both animals."""
        return self.relation, frozenset(self[1:])


def order_of(scene: Scene) -> Order | None:
    """The order of a scene of two; None for a lone animal."""
    return Order(scene.relation, *(thing.animal for thing in scene.things)) if len(scene.things) == 2 else None


def orders_of(scenes: Sequence[Scene]) -> set[Order]:
    """All orders of some scenes."""
    return {order for scene in scenes if (order := order_of(scene))}


def check_orders(split: Split) -> Iterator[Finding]:
    """Unseen orders are trained the other way round only; held-out pairs not at all."""
    train = orders_of(split.subsets["train"].scenes)
    trained = {order.pair for order in train}
    for name, records in split.subsets.items():
        found = orders_of(records.scenes)
        if name.endswith("unseen_order"):
            leaked = (str(tuple(order)) for order in sorted(found & train))
            yield Finding(f"no order of {name} is in train", *first(leaked))
            strange = (str(tuple(order)) for order in sorted(found) if order.swapped not in train)
            yield Finding(f"every order of {name} is in train the other way round", *first(strange))
        elif name == "validation" or name.endswith("unseen_pairs"):
            leaked = (str(tuple(order)) for order in sorted(found) if order.pair in trained)
            yield Finding(f"no animal pair of {name} is in train with its relation", *first(leaked))
    validation = {order.pair for order in orders_of(split.subsets["validation"].scenes)}
    for name in (name for name in split.subsets if name.endswith("unseen_pairs")):
        shared = (str(tuple(o)) for o in sorted(orders_of(split.subsets[name].scenes)) if o.pair in validation)
        yield Finding(f"{name} and validation share no animal pair with its relation", *first(shared))


def check_relations(split: Split) -> Iterator[Finding]:
    """Scenes realise the recipe's relations, tests their own, and captions tell them."""
    asked = set(split.recipe["relations"])
    for name, r in split.subsets.items():
        own = {relation for relation in asked if name.startswith(relation.replace("/", "_"))} or asked
        pairs = [(scene, graph) for scene, graph in zip(r.scenes, r.graphs, strict=True) if len(scene.things) == 2]
        yield Finding(f"every pair of {name} stands as asked", *first(s.key for s, _ in pairs if s.relation not in own))
        yield Finding(
            f"every caption of a pair of {name} tells its relation", *first(s.key for s, g in pairs if not g.edges)
        )


def check_textures(split: Split) -> Iterator[Finding]:
    """Each order of train is there in all textures, on all backgrounds."""
    seen: dict[Order, set] = {}
    for scene in split.subsets["train"].scenes:
        if order := order_of(scene):
            seen.setdefault(order, set()).add((scene.background, *(thing.texture for thing in scene.things)))
    everything = len(split.vocabulary.backgrounds) * len(split.vocabulary.textures) ** 2
    lacking = (
        f"{tuple(order)}: {len(found)} of {everything}" for order, found in seen.items() if len(found) < everything
    )
    yield Finding("every order of train is there in all textures and backgrounds", *first(lacking))


def check_order_fractions(split: Split) -> Iterator[Finding]:
    """The realised fractions of each relation are the nearest to the asked ones."""
    train = orders_of(split.subsets["train"].scenes)
    n_pairs, held = held_out(split)
    for relation in split.recipe["relations"]:
        orders = {order for order in train if order.relation == relation}
        pairs = {order.pair for order in orders}
        yield nearest(f"training pairs, {relation}", len(pairs), split.recipe["pairs"], n_pairs - held)
        swapped = len(orders) - len(pairs)
        yield nearest(f"pairs in both orders, {relation}", swapped, split.recipe["hard_negatives"], len(pairs))


CHECKS = (check_orders, check_relations, check_textures, check_order_fractions)

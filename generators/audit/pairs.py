"""Checks of the kinds of splits that hold out pairs of animals: binding, dependence and spatial."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from menagerie.envs.scene import Scene
from menagerie.envs.slots import SLOTS_OF
from menagerie.generators.audit.candidates import different, unusable
from menagerie.generators.audit.findings import Finding, animal_pair, first, nearest, trainable
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.hard_negatives.swaps import swap_places
from menagerie.generators.captions.relations import edge_holds
from menagerie.generators.storage.split_file import Records, Split


def pairs_of(records: Records) -> set[frozenset[str]]:
    """The distinct animal pairs of a subset."""
    return {pair for scene in records.scenes if (pair := animal_pair(scene))}


def check_pairs(split: Split) -> Iterator[Finding]:
    """Check that animal pairs of `unseen_pairs` and validation are not in train, nor shared by both."""
    seen = pairs_of(split.subsets["train"])
    unseen = {name: pairs_of(split.subsets[name]) for name in ("unseen_pairs", "validation")}
    for name, pairs in unseen.items():
        shared = sorted(map(sorted, pairs & seen))
        yield Finding(f"no animal pair of {name} is in train", not shared, f"{shared[:1] or f'{len(pairs)} pairs'}")
    shared = sorted(map(sorted, unseen["unseen_pairs"] & unseen["validation"]))
    yield Finding("unseen_pairs and validation share no animal pair", not shared, f"{shared[:1] or ''}")


def textured(scene: Scene) -> frozenset[tuple[str, str]]:
    """The (animal, texture) combinations of a scene, without their slots."""
    return frozenset((thing.animal, thing.texture) for thing in scene.things)


def swapped_textures(scene: Scene) -> frozenset[tuple[str, str]]:
    """The (animal, texture) combinations of a scene of two after exchanging its textures."""
    one, other = scene.things
    return frozenset({(one.animal, other.texture), (other.animal, one.texture)})


def check_bindings(split: Split) -> Iterator[Finding]:
    """Check that tested bindings of training pairs are not in train, except those of `train_pairs`, which must be."""
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
    """Check that realised fractions are the nearest to the requested ones, and that each pair has one assignment of two
    different textures, or that and its swap."""
    assignments: dict[frozenset[str], set] = {}
    for scene in split.subsets["train"].scenes:
        if pair := animal_pair(scene):
            assignments.setdefault(pair, set()).add(textured(scene))
    totals = trainable(split, unusable(split, "left/right", different(split)))
    swapped = [pair for pair, textured_pairs in assignments.items() if len(textured_pairs) == 2]
    yield nearest("training pairs", len(assignments), split.recipe["pairs"], totals)
    fraction = split.recipe["hard_negatives"]
    yield nearest("pairs with hard negatives in train", len(swapped), fraction, [len(assignments)])
    odd = [sorted(pair) for pair, textured_pairs in assignments.items() if not sound_assignment(textured_pairs)]
    claim = "each training pair has one assignment of two different textures, or that and its swap"
    yield Finding(claim, not odd, f"first: {odd[0]}" if odd else "")


def sound_assignment(textured_pairs: set[frozenset[tuple[str, str]]]) -> bool:
    """Whether an animal pair's textured pairs are one assignment of two different textures, or that and its swap."""
    one, *others = textured_pairs
    different = len({texture for _, texture in one}) == 2
    (a, texture_a), (b, texture_b) = one
    return different and others in ([], [frozenset({(a, texture_b), (b, texture_a)})])


# Largest difference between realised and requested information: quotas are whole numbers.
TOLERANCE = 0.01


def painted(records: Records) -> set[tuple[str, str]]:
    """All (animal, texture) that a subset shows."""
    return {(thing.animal, thing.texture) for scene in records.scenes for thing in scene.things}


def check_painted(split: Split) -> Iterator[Finding]:
    """Check that train shows every animal in its textures of `seen_textures`, and never in those of `unseen_textures`
    and validation."""
    train = painted(split.subsets["train"])
    for name in ("unseen_textures", "validation"):
        leaked = (f"{texture} {animal}" for animal, texture in sorted(painted(split.subsets[name]) & train))
        yield Finding(f"no animal of {name} is in train in that texture", *first(leaked))
    strange = (f"{texture} {animal}" for animal, texture in sorted(painted(split.subsets["seen_textures"]) - train))
    yield Finding("every animal of seen_textures is in train in that texture", *first(strange))


def check_dependence_pairs(split: Split) -> Iterator[Finding]:
    """Check that validation has pairs of its own, and that the fraction of training pairs is nearest to the requested
    one."""
    train, validation = pairs_of(split.subsets["train"]), pairs_of(split.subsets["validation"])
    tests = pairs_of(split.subsets["seen_textures"]) | pairs_of(split.subsets["unseen_textures"])
    shared = sorted(map(sorted, validation & (train | tests)))
    yield Finding("no animal pair of validation is in train or a test", not shared, f"{shared[:1] or ''}")
    yield nearest("training pairs", len(train), split.recipe["pairs"], trainable(split, 0))


def check_information(split: Split) -> Iterator[Finding]:
    """Check that the normalised mutual information of texture and animal, over all things of train, is the requested
    one."""
    from sklearn.metrics import normalized_mutual_info_score

    things = [thing for scene in split.subsets["train"].scenes for thing in scene.things]
    animals, textures = zip(*((thing.animal, thing.texture) for thing in things), strict=True)
    realised = normalized_mutual_info_score(animals, textures, average_method="arithmetic")
    requested = split.recipe["information"]
    detail = f"{realised:.4f}, requested {requested:.4f} (arithmetic mean of both entropies)"
    yield Finding("information of texture and animal: as requested", abs(realised - requested) <= TOLERANCE, detail)


class Order(NamedTuple):
    """The animals in a relation's first and second slot."""

    relation: str
    first: str
    second: str

    @property
    def swapped(self) -> "Order":
        return self._replace(first=self.second, second=self.first)

    @property
    def pair(self) -> tuple[str, frozenset[str]]:
        return self.relation, frozenset(self[1:])


def orders_of(scenes: Sequence[Scene]) -> set[Order]:
    """The orders in the scenes of two things."""
    pairs = (scene for scene in scenes if len(scene.things) == 2)
    return {Order(scene.relation, *(thing.animal for thing in scene.things)) for scene in pairs}


def check_orders(split: Split) -> Iterator[Finding]:
    """Check that train shows seen orders, and unseen orders only reversed. Check that validation shares no animal
    pair with train, and tests of unseen pairs none with either, in the same relation if `unseen_under` is "own"."""
    train = orders_of(split.subsets["train"].scenes)
    under_all = split.recipe["unseen_under"] == "all"
    where = "in any relation" if under_all else "with its relation"

    def identity(order: Order) -> object:
        return order.pair[1] if under_all else order.pair

    trained = set(map(identity, train))
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
            leaked = (str(tuple(order)) for order in sorted(orders) if identity(order) in trained)
            yield Finding(f"no animal pair of {name} is in train {where}", *first(leaked))
    validation = set(map(identity, orders_of(split.subsets["validation"].scenes)))
    for name in (name for name in split.subsets if name.endswith("unseen_pairs")):
        shared = (str(tuple(o)) for o in sorted(orders_of(split.subsets[name].scenes)) if identity(o) in validation)
        yield Finding(f"{name} and validation share no animal pair {where}", *first(shared))


def check_relations(split: Split) -> Iterator[Finding]:
    """Check that pairs are in the recipe's relations, in tests of one relation in that one. Check that their captions
    state that relation, and that their negatives state it of the same two things, exchanged."""
    for name, r in split.subsets.items():
        of_test = {relation for relation in SLOTS_OF if name.startswith(relation.replace("/", "_"))} or set(SLOTS_OF)
        allowed = of_test & set(split.recipe["relations"])
        rows = zip(r.scenes, r.graphs, r.negative_graphs, strict=True)
        pairs = [row for row in rows if len(row[0].things) == 2]
        strange = (scene.key for scene, _, _ in pairs if scene.relation not in allowed)
        yield Finding(f"every pair of {name} is in a requested relation", *first(strange))
        silent = (scene.key for scene, graph, _ in pairs if not states_relation(graph, scene))
        yield Finding(f"every caption of a pair of {name} states its relation", *first(silent))
        other = (scene.key for scene, graph, negative in pairs if negative.nodes and not turns(negative, graph, scene))
        yield Finding(f"every negative of a pair of {name} states its relation, turned", *first(other))


def states_relation(graph: SceneGraph, scene: Scene) -> bool:
    """Whether a graph has one edge, which states the relation of a scene's two things."""
    return len(graph.edges) == 1 and edge_holds(graph.edges[0], graph, scene)


def turns(negative: SceneGraph, graph: SceneGraph, scene: Scene) -> bool:
    """Whether a negative mentions what the caption's `graph` mentions, and states the relation of a scene in which the
    two things have exchanged places."""
    return sorted(negative.nodes) == sorted(graph.nodes) and states_relation(negative, swap_places(scene))


def check_order_fractions(split: Split) -> Iterator[Finding]:
    """Check that the realised fractions of each relation are the nearest to the requested ones."""
    textures = list(product(split.vocabulary.textures, repeat=2))
    train = orders_of(split.subsets["train"].scenes)
    for relation in split.recipe["relations"]:
        orders = {order for order in train if order.relation == relation}
        pairs = {order.pair for order in orders}
        totals = trainable(split, unusable(split, relation, textures))
        yield nearest(f"training pairs, {relation}", len(pairs), split.recipe["pairs"], totals)
        swapped = len(orders) - len(pairs)
        yield nearest(f"pairs in both orders, {relation}", swapped, split.recipe["hard_negatives"], [len(pairs)])


def check_negatives(split: Split) -> Iterator[Finding]:
    """Check that every pair of train has a negative, even if its caption leaves out textures."""
    r = split.subsets["train"]
    lacking = (s.key for s, text in zip(r.scenes, r.negatives, strict=True) if len(s.things) == 2 and not text)
    yield Finding("every pair of train has a negative", *first(lacking))

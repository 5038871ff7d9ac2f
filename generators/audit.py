"""Proves from a split file alone that nothing held out is in train and nothing is mislabelled.

The audit shares no code with the generator of splits: it recomputes pairs, fractions, words
and graphs from what the file says, so that a mistake in one does not hide in the other.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from envs.errors import UserError
from envs.scene import Scene
from generators.graph import SceneGraph
from generators.relations import edge_holds
from generators.split_file import Records, Split, check_store, read_split


class Finding(NamedTuple):
    """One check: what it claims, whether it holds, and the figures or the first offender."""

    claim: str
    holds: bool
    detail: str


def animal_pair(scene: Scene) -> frozenset[str] | None:
    """The unordered pair of animals, or None for a lone animal."""
    return frozenset(thing.animal for thing in scene.things) if len(scene.things) == 2 else None


def true_nodes(scene: Scene) -> set[str]:
    """All noun phrases that are true of the scene."""
    return {f"{thing.texture} {thing.animal}" for thing in scene.things} | {scene.background}


def states(graph: SceneGraph, scene: Scene) -> bool:
    """Whether every node and edge of `graph` is true of `scene` and no thing is left out."""
    return set(graph.nodes) == true_nodes(scene) and all(edge_holds(edge, graph, scene) for edge in graph.edges)


def words(text: str) -> Counter:
    """The bag of words of a caption; "a" and "an" are one word."""
    return Counter("a" if word == "an" else word for word in text.split())


def mentions(text: str, graph: SceneGraph) -> bool:
    """Whether `text` contains the nodes of `graph`, its things in the same order."""
    places = [text.find(f" {node}") for node in graph.nodes]
    return -1 not in places and places == sorted(places)


def first(offenders: Iterator[str]) -> tuple[bool, str]:
    """(True, "") for no offender, else (False, the first of them)."""
    offender = next(offenders, None)
    return offender is None, "" if offender is None else f"first: {offender}"


def check_disjoint(split: Split) -> Iterator[Finding]:
    """No scene of train is in a test or in validation."""
    train = set(split.subsets["train"].scenes)
    for name, records in split.subsets.items():
        if name != "train":
            holds, detail = first(scene.key for scene in records.scenes if scene in train)
            yield Finding(f"no scene of {name} is in train", holds, detail or f"{len(records)} scenes")


def pairs_of(records: Records) -> set[frozenset[str]]:
    """The distinct animal pairs of a subset."""
    return {pair for scene in records.scenes if (pair := animal_pair(scene))}


def check_pairs(split: Split) -> Iterator[Finding]:
    """Pairs that are held out as pairs never meet in train, nor in one another's subset."""
    seen = pairs_of(split.subsets["train"])
    held = {name: pairs_of(split.subsets[name]) for name in ("unseen_pairs", "validation")}
    for name, pairs in held.items():
        shared = sorted(map(sorted, pairs & seen))
        yield Finding(f"no animal pair of {name} is in train", not shared, f"{shared[:1] or f'{len(pairs)} pairs'}")
    shared = sorted(map(sorted, held["unseen_pairs"] & held["validation"]))
    yield Finding("unseen_pairs and validation share no animal pair", not shared, f"{shared[:1] or ''}")


def textured(scene: Scene) -> frozenset[tuple[str, str]]:
    """The (animal, texture) combinations of a scene, wherever they stand."""
    return frozenset((thing.animal, thing.texture) for thing in scene.things)


def check_bindings(split: Split) -> Iterator[Finding]:
    """Test bindings of training pairs are not in train; those of `train_pairs` are."""
    train = {textured(scene) for scene in split.subsets["train"].scenes}
    for name in ("seen_pairs", "different_bag"):
        holds, detail = first(scene.key for scene in split.subsets[name].scenes if textured(scene) in train)
        yield Finding(f"no textured pair of {name} is in train", holds, detail)
    holds, detail = first(scene.key for scene in split.subsets["train_pairs"].scenes if textured(scene) not in train)
    yield Finding("every textured pair of train_pairs is in train", holds, detail)


def check_lone_animals(split: Split) -> Iterator[Finding]:
    """Every texture-animal-background conjunction is in train as a lone animal."""
    v = split.vocabulary
    lone = {(s.background, *s.things[0][:2]) for s in split.subsets["train"].scenes if len(s.things) == 1}
    missing = set(product(v.backgrounds, v.animals, v.textures)) - lone
    yield Finding("every lone animal is in train", not missing, f"{len(lone)} conjunctions, {len(missing)} missing")


def check_fractions(split: Split) -> Iterator[Finding]:
    """The realised fractions are the nearest to the asked ones; textures are as they should be."""
    assignments: dict[frozenset[str], set] = {}
    for scene in split.subsets["train"].scenes:
        if pair := animal_pair(scene):
            assignments.setdefault(pair, set()).add(textured(scene))
    n_pairs = len(split.vocabulary.animals) * (len(split.vocabulary.animals) - 1) // 2
    held = sum(max(round(split.recipe[name] * n_pairs), split.recipe[name] > 0) for name in ("reserve", "validation"))
    swapped = [pair for pair, found in assignments.items() if len(found) == 2]
    yield nearest("training pairs", len(assignments), split.recipe["pairs"], n_pairs - held)
    yield nearest("pairs with hard negatives in train", len(swapped), split.recipe["hard_negatives"], len(assignments))
    odd = [sorted(pair) for pair, found in assignments.items() if not sound_assignment(found)]
    claim = "each training pair has one assignment of two different textures, or that and its swap"
    yield Finding(claim, not odd, f"first: {odd[0]}" if odd else "")


def sound_assignment(found: set[frozenset[tuple[str, str]]]) -> bool:
    """Whether the textured pairs found of one animal pair are one assignment, or it and its swap."""
    one, *others = found
    different = len({texture for _, texture in one}) == 2
    (a, texture_a), (b, texture_b) = one
    return different and others in ([], [frozenset({(a, texture_b), (b, texture_a)})])


def nearest(what: str, found: int, fraction: float, total: int) -> Finding:
    """Whether `found` of `total` is as near to `fraction` as a whole number gets."""
    realised = found / total if total else 0.0
    detail = f"{found} of {total} = {realised:.3f}, asked {fraction:.3f}"
    return Finding(f"{what}: the asked fraction", abs(found - fraction * total) <= 0.5 + 1e-9, detail)


def check_texts(split: Split) -> Iterator[Finding]:
    """Captions and graphs are true, negatives are false and have the same bag of words."""
    for name, r in split.subsets.items():
        rows = list(zip(r.scenes, r.captions, r.graphs, r.negatives, r.negative_graphs, strict=True))
        untrue = (s.key for s, c, g, _, _ in rows if not (states(g, s) and mentions(c, g)))
        yield Finding(f"every caption of {name} is true and says its graph", *first(untrue))
        negatives = [row for row in rows if row[3]]
        bag = (s.key for s, c, _, n, _ in negatives if words(c) != words(n))
        yield Finding(f"every negative of {name} has its caption's bag of words", *first(bag))
        true = (s.key for s, _, _, n, g in negatives if states(g, s) or not mentions(n, g))
        yield Finding(f"every negative of {name} is false and says its graph", *first(true))
        if name != "train":
            lacking = (row[0].key for row in rows if not row[3])
            yield Finding(f"every scene of {name} has a negative", *first(lacking))


def check_file(split: Split) -> Iterator[Finding]:
    """The file is as it was written, and the shards beside it show its scenes."""
    yield Finding("the file has the checksum that it was written with", split.intact, "")
    try:
        check_store(split)
    except UserError as error:
        yield Finding("the store shows the scenes that the split says", False, str(error))
    else:
        yield Finding("the store shows the scenes that the split says", True, f"{len(split.shards)} shards")


CHECKS = (
    check_file,
    check_disjoint,
    check_pairs,
    check_bindings,
    check_lone_animals,
    check_fractions,
    check_texts,
)


def audit(path: Path) -> list[Finding]:
    """All findings on a split file; one that can't be read raises `UserError`."""
    split = read_split(path, verify=False)
    return [finding for check in CHECKS for finding in check(split)]

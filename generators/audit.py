"""Proves from a split file alone that nothing held out is in train and nothing is mislabelled.

The audit shares no code with the generator of splits: it recomputes pairs, fractions, words
and graphs from what the file says, so that a mistake in one does not hide in the other.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from envs.scene import Scene
from generators.graph import SceneGraph
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
    """Whether every node of `graph` is true of `scene` and no thing is left out."""
    return set(graph.nodes) == true_nodes(scene) and all(
        0 <= edge.subject < len(graph.nodes) and 0 <= edge.object < len(graph.nodes) for edge in graph.edges
    )


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


def check_fractions(split: Split) -> Iterator[Finding]:
    """The realised fractions are within one pair of the asked ones."""
    assignments: dict[frozenset[str], set] = {}
    for scene in split.subsets["train"].scenes:
        if pair := animal_pair(scene):
            assignments.setdefault(pair, set()).add(textured(scene))
    n_pairs = len(split.vocabulary.animals) * (len(split.vocabulary.animals) - 1) // 2
    held = sum(max(round(split.recipe[name] * n_pairs), split.recipe[name] > 0) for name in ("reserve", "validation"))
    swapped = sum(len(found) == 2 for found in assignments.values())
    many = sum(len(found) > 2 for found in assignments.values())
    yield within_one("training pairs", len(assignments), split.recipe["pairs"], n_pairs - held)
    yield within_one("pairs with hard negatives in train", swapped, split.recipe["hard_negatives"], len(assignments))
    yield Finding("each training pair has one assignment of textures, or that and its swap", many == 0, "")


def within_one(what: str, found: int, fraction: float, total: int) -> Finding:
    """Whether `found` of `total` is within one of `fraction`."""
    realised = found / total if total else 0.0
    detail = f"{found} of {total} = {realised:.3f}, asked {fraction:.3f}"
    return Finding(f"{what}: the asked fraction", abs(found - fraction * total) <= 1, detail)


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


def check_pixels(split: Split) -> Iterator[Finding]:
    """The rows of the store show the scenes that the split says, where the shards are there."""
    from generators.dataset import PixelReader

    check_store(split)
    reader = PixelReader(split)
    for name, records in split.subsets.items():
        stored = split.vocabulary.decode(reader.read_all(records.rows, "scenes")) if len(records) else []
        wrong = (scene.key for scene, shown in zip(records.scenes, stored, strict=True) if scene != shown)
        yield Finding(f"the store shows the scenes of {name}", *first(wrong))


def audit(path: Path) -> list[Finding]:
    """All findings on a split file; damage raises `UserError`."""
    split = read_split(path)
    checks = (check_disjoint, check_pairs, check_bindings, check_fractions, check_texts, check_pixels)
    return [finding for check in checks for finding in check(split)]

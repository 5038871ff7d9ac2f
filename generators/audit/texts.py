"""Checks that captions and graphs are true of their scenes, and negatives false with the same words."""

from collections import Counter
from collections.abc import Iterator

from menagerie.envs.scene import Scene
from menagerie.generators.audit.findings import Finding, first
from menagerie.generators.audit.mentions import RequestedChances, requested_chances, states_in_part
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.phrases import attributes, counted
from menagerie.generators.captions.relations import edge_holds
from menagerie.generators.parsers.world_grammar import parse
from menagerie.generators.storage.split_file import Split

# Kinds whose negatives don't have the caption's bag of words.
OTHER_WORDS = {"counting"}


def true_nodes(scene: Scene) -> set[str]:
    """All noun phrases that are true of the scene."""
    numbers = Counter((attributes(thing), thing.animal) for thing in scene.things)
    return {counted(*named, number) for named, number in numbers.items()} | {scene.background}


def states(graph: SceneGraph, scene: Scene) -> bool:
    """Whether every node and edge of `graph` is true of `scene` and all things are mentioned."""
    return set(graph.nodes) == true_nodes(scene) and all(edge_holds(edge, graph, scene) for edge in graph.edges)


def words(text: str) -> Counter:
    """The bag of words of a caption; "a" and "an" are one word."""
    return Counter("a" if word == "an" else word for word in text.split())


def check_texts(split: Split) -> Iterator[Finding]:
    """Captions and graphs are true, negatives are false and have the same bag of words.

    Only training captions may be incomplete, and only if the recipe requests it.
    """
    v = split.vocabulary
    for name, r in split.subsets.items():
        incomplete = name == "train" and requested_chances(split) != RequestedChances()
        holds = states_in_part if incomplete else states
        rows = list(zip(r.scenes, r.captions, r.graphs, r.negatives, r.negative_graphs, strict=True))
        untrue = (s.key for s, c, g, _, _ in rows if not (holds(g, s) and parse(c, v) == g))
        yield Finding(f"every caption of {name} is true and states its graph", *first(untrue))
        negatives = [row for row in rows if row[3]]
        if split.recipe["kind"] not in OTHER_WORDS:
            bag = (s.key for s, c, _, n, _ in negatives if words(c) != words(n))
            yield Finding(f"every negative of {name} has its caption's bag of words", *first(bag))
        true = (s.key for s, _, _, n, g in negatives if holds(g, s) or parse(n, v) != g)
        yield Finding(f"every negative of {name} is false and states its graph", *first(true))
        if name != "train":
            lacking = (row[0].key for row in rows if not row[3])
            yield Finding(f"every scene of {name} has a negative", *first(lacking))

"""Checks of the texts of crowd splits: captions of all or some things, and chains of relations.

The relations of things are derived anew from the positions of their places.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import comb
from typing import Any

from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import SLOTS, size_factor
from menagerie.generators.audit.findings import Finding, first, rules_of, within
from menagerie.generators.audit.statistics import Tallies
from menagerie.generators.audit.texts import mentioned_phrases, words
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.hard_negatives.swaps import exchanged, swap_exchanged
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.parsers.world_grammar import parse
from menagerie.generators.rules.hold_out import matched
from menagerie.generators.storage.split_file import Split

ASIDE = 0.7  # metres; things farther apart to the side are left and right of each other
SEARCHES = "search"  # starts the names of tests whose captions mention one thing


def relation(scene: Scene, one: int, other: int) -> str:
    """The predicate of two things of a scene, by the positions of their places."""
    (x, y, z), (other_x, other_y, other_z) = (SLOTS[scene.things[i].slot].position for i in (one, other))
    if abs(x - other_x) > ASIDE:
        return "to the left of" if x < other_x else "to the right of"
    if z != other_z:
        return "above" if z > other_z else "under"
    return "in front of" if y < other_y else "behind"


def says_truly(graph: SceneGraph, scene: Scene) -> bool:
    """Whether the nodes of a graph are the scene's background and things of the scene, none twice, and all edges
    hold."""
    phrases = mentioned_phrases(graph, scene)
    said = sorted([*filter(None, phrases), scene.background]) == sorted(graph.nodes)
    return said and all(holds(edge, graph, scene, phrases) for edge in graph.edges)


def holds(edge: Edge, graph: SceneGraph, scene: Scene, phrases: list[str]) -> bool:
    """Whether an edge holds between the things that its nodes mention."""
    ends = [phrases.index(graph.nodes[end]) if graph.nodes[end] in phrases else -1 for end in edge[1:]]
    return min(ends) >= 0 and relation(scene, *ends) == edge.predicate


def check_crowd_texts(split: Split) -> Iterator[Finding]:
    """Check that captions are true, and that negatives are false, true of the swap, and, except in searches, made of
    the same words as the caption."""
    v = split.vocabulary
    for name, r in split.subsets.items():
        rows = list(zip(r.scenes, r.captions, r.graphs, r.negatives, r.negative_graphs, strict=True))
        untrue = (s.key for s, c, g, _, _ in rows if not (says_truly(g, s) and parse(c, v) == g))
        yield Finding(f"every caption of {name} is true and states its graph", *first(untrue))
        negatives = [row for row in rows if row[3]]
        true = (s.key for s, _, _, n, g in negatives if says_truly(g, s) or parse(n, v) != g)
        yield Finding(f"every negative of {name} is false and states its graph", *first(true))
        other = (s.key for s, _, _, _, g in negatives if not says_truly(g, swap_exchanged(s)))
        yield Finding(f"every negative of {name} is true of the swap", *first(other))
        if not name.startswith(SEARCHES):
            bag = (s.key for s, c, _, n, _ in negatives if words(c) != words(n))
            yield Finding(f"every negative of {name} has its caption's bag of words", *first(bag))
        lacking = (row[0].key for row in rows if not row[3])
        if name != "train":
            yield Finding(f"every scene of {name} has a negative", *first(lacking))


def check_crowd_mentions(split: Split) -> Iterator[Finding]:
    """Check that captions mention as many things, and state as many relations, as they should. Check that those of
    searches mention the target."""
    most = max(split.recipe["things"])
    for name, r in split.subsets.items():
        few, chains = [], []
        for scene, graph in zip(r.scenes, r.graphs, strict=True):
            told = len(graph.nodes) - 1
            asked = 1 if name.startswith(SEARCHES) else min(max(most, 2), len(scene.things))
            if not (1 <= told <= min(most, len(scene.things)) if name == "train" else told == asked):
                few.append(scene.key)
            steps = [(edge.subject, edge.object) for edge in graph.edges]
            if steps != [(i, i + 1) for i in range(min(split.recipe["relations_stated"], told - 1))]:
                chains.append(scene.key)
        yield Finding(f"captions of {name} mention as many things as they should", *first(iter(few)))
        yield Finding(f"captions of {name} state as many relations as they should", *first(iter(chains)))
        if name.startswith(SEARCHES):
            other = (s.key for s, graph in zip(r.scenes, r.graphs, strict=True) if not names_target(graph, s, name))
            yield Finding(f"captions of {name} mention the target", *first(other))


def names_target(graph: SceneGraph, scene: Scene, name: str) -> bool:
    """Whether a graph mentions one of the two exchanged things and, in a search for a conjunction, the one that shares
    its animal or its texture with all others."""
    pair = exchanged(scene)
    others = [thing for i, thing in enumerate(scene.things) if i not in pair]
    told = [scene.things[i] for i in pair if phrase(scene.things[i]) in graph.nodes]
    shares = [one.animal == told[0].animal or one.texture == told[0].texture for one in others if told]
    return len(told) == 1 and (all(shares) or "conjunction" not in name)


def check_crowd_negatives(split: Split) -> Iterator[Finding]:
    """Check that a training scene has a negative if and only if its caption tells both exchanged textures, train shows
    the cells that the exchange gives, and no rule holds out the swap."""
    train = split.subsets["train"]
    shown, rules = {thing[:2] for scene in train.scenes for thing in scene.things}, rules_of(split)
    wrong = (
        scene.key
        for scene, graph, negative in zip(train.scenes, train.graphs, train.negatives, strict=True)
        if bool(negative) != (exchangeable(scene, graph, shown) and not matched(rules, swap_exchanged(scene)))
    )
    yield Finding("train has a negative where, and only where, a swap can be told", *first(wrong))


def exchangeable(scene: Scene, graph: SceneGraph, shown: set[tuple[str, ...]]) -> bool:
    """Whether a caption mentions both things that its scene's swap changes, with their textures, and train shows the
    cells that these have after the swap."""
    if len(scene.things) < 2:
        return False
    swap = swap_exchanged(scene).things
    both = [(one, other) for one, other in zip(scene.things, swap, strict=True) if one != other]
    return all(phrase(one) in graph.nodes and other[:2] in shown for one, other in both)


def check_crowd_shares(split: Split) -> Iterator[Finding]:
    """Check that training captions mention things and textures as often as requested."""
    recipe, train, tallies = split.recipe, split.subsets["train"], Tallies()
    if not draws_mentions(recipe):
        return
    most = max(recipe["things"])
    mentions = textured = 0
    scenes = Counter(len(scene.things) for scene in train.scenes)
    told: Counter[tuple[int, int]] = Counter()
    salient: Counter[int] = Counter()
    for scene, graph in zip(train.scenes, train.graphs, strict=True):
        phrases = mentioned_phrases(graph, scene)
        number = sum(map(bool, phrases))
        told[len(phrases), number] += 1
        salient[len(phrases)] += number == 1 and bool(phrases[scene.things.index(foremost(scene))])
        mentions += number
        textured += sum(text == phrase(thing) for text, thing in zip(phrases, scene.things, strict=True))
    for n, total in scenes.items():
        chances = numbers_told(n, recipe["mentioned"], most)
        for k, chance in chances.items():
            asked = (1 - recipe["salient"]) * chance + recipe["salient"] * (k == 1)
            tallies.add(f"captions of {n} things that mention {k}", "train", told[n, k], asked, total)
        alone = recipe["salient"] + (1 - recipe["salient"]) * chances[1] / n
        tallies.add(f"captions of {n} things that mention the salient one only", "train", salient[n], alone, total)
    yield tallies.finding("captions mention things as often as requested")
    yield within("mentions in train with their texture", textured, mentions, recipe["attributes"])


def draws_mentions(recipe: Mapping[str, Any]) -> bool:
    """Whether it is drawn which things training captions mention, or whether with their textures."""
    return (recipe["mentioned"], recipe["attributes"], recipe["salient"]) != (1, 1, 0)


def foremost(scene: Scene) -> Thing:
    """The salient thing: the biggest in the foremost row, of several the first in slot order."""
    return min(scene.things, key=lambda thing: (SLOTS[thing.slot].position[1], -size_factor(thing.size)))


def numbers_told(things: int, mentioned: float, most: int) -> dict[int, float]:
    """The probability of each number of mentioned things in captions that aren't limited to the salient thing."""
    chances = dict.fromkeys(range(1, things + 1), 0.0)
    for k in range(things + 1):
        chances[min(max(k, 1), most)] += comb(things, k) * mentioned**k * (1 - mentioned) ** (things - k)
    return chances

"""Checks of incomplete training captions: how often things and textures are mentioned."""

from collections.abc import Iterator
from typing import NamedTuple

from menagerie.envs.scene import Scene
from menagerie.envs.slots import SIZES
from menagerie.generators.audit.findings import Finding, first, within
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.captions.relations import edge_holds
from menagerie.generators.storage.split_file import Split

NO = "no "


class RequestedChances(NamedTuple):
    """The probabilities in a recipe; by default captions are complete."""

    mentioned: float = 1.0
    attributes: float = 1.0
    salient: float = 0.0
    negated: float = 0.0


def requested_chances(split: Split) -> RequestedChances:
    """The probabilities that the split's recipe sets for its training captions."""
    return RequestedChances(**{name: split.recipe[name] for name in RequestedChances._fields if name in split.recipe})


def mentioned_phrases(graph: SceneGraph, scene: Scene) -> list[str]:
    """The phrase by which a graph mentions each thing of its scene: "red cat", "cat", or "" if it doesn't."""
    candidates = [(phrase(thing), phrase(thing._replace(texture=""))) for thing in scene.things]
    return [next((text for text in texts if text in graph.nodes), "") for texts in candidates]


def states_in_part(graph: SceneGraph, scene: Scene) -> bool:
    """Whether `graph` states only what is true of `scene`: one or more things, none twice, their relation if it has
    edges, and the background."""
    mentioned = [text for text in mentioned_phrases(graph, scene) if text]
    affirmed = sorted(node for node in graph.nodes if not node.startswith(NO))
    true = affirmed == sorted([*mentioned, scene.background]) and denies_only_absent(graph, scene)
    return bool(mentioned) and true and all(edge_holds(edge, graph, scene) for edge in graph.edges)


def denies_only_absent(graph: SceneGraph, scene: Scene) -> bool:
    """Whether nothing that a graph negates is in the scene."""
    denied = {node.removeprefix(NO) for node in graph.nodes if node.startswith(NO)}
    return not denied & set(map(phrase, scene.things))


def salient_of(scene: Scene) -> int:
    """Index of the salient one of two things: the bigger one, else the first, which is the left one."""
    left, right = (SIZES.get(thing.size, 1.0) for thing in scene.things)
    return int(right > left)


def check_shares(split: Split) -> Iterator[Finding]:
    """Animals and textures are mentioned as often as requested."""
    mentioned, attributes, salient, negated = chances = requested_chances(split)
    if chances == RequestedChances():
        return
    train = split.subsets["train"]
    phrases_of = [
        (scene, mentioned_phrases(graph, scene)) for graph, scene in zip(train.graphs, train.scenes, strict=True)
    ]
    pairs = [(salient_of(scene), phrases) for scene, phrases in phrases_of if len(phrases) == 2]
    both = sum(all(phrases) for _, phrases in pairs)
    alone = sum(bool(phrases[big]) and not phrases[1 - big] for big, phrases in pairs)
    chance = (1 - salient) * mentioned**2
    yield within("training pairs whose caption mentions both", both, len(pairs), chance)
    # If neither of the two is drawn, one is taken at random: so without `salient` either is alone equally often.
    chance = salient + (1 - salient) * (1 - mentioned**2) / 2
    yield within("training pairs whose caption mentions the salient one only", alone, len(pairs), chance)
    mentions = sum(bool(text) for _, phrases in phrases_of for text in phrases)
    textured = sum(text in map(phrase, scene.things) for scene, phrases in phrases_of for text in phrases)
    yield within("mentions in train with their texture", textured, mentions, attributes)
    denying = sum(any(node.startswith(NO) for node in graph.nodes) for graph in train.graphs)
    yield within("captions in train with a negation", denying, len(train), negated)


def check_negatives(split: Split) -> Iterator[Finding]:
    """A training scene has a negative if and only if its caption mentions both textures."""
    r = split.subsets["train"]
    strange = (
        scene.key
        for scene, graph, negative in zip(r.scenes, r.graphs, r.negatives, strict=True)
        if bool(negative) != mentions_both_textures(graph, scene)
    )
    yield Finding("train has a negative where, and only where, both textures are mentioned", *first(strange))


def mentions_both_textures(graph: SceneGraph, scene: Scene) -> bool:
    """Whether a graph mentions two things with their textures."""
    complete = set(map(phrase, scene.things))
    return len(complete) == 2 and complete <= set(graph.nodes)


CHECKS = (check_shares, check_negatives)

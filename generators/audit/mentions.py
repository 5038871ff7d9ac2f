"""What the audit asks of training captions that may tell less than all: how much do they tell?"""

from collections.abc import Iterator
from typing import NamedTuple

from envs.scene import Scene
from envs.slots import SIZES
from generators.audit.findings import Finding, first, within
from generators.captions.graph import SceneGraph
from generators.captions.phrases import phrase
from generators.storage.split_file import Split

NO = "no "


class Asked(NamedTuple):
    """The chances that a recipe asks for; one that names none tells all."""

    mentioned: float = 1.0
    attributes: float = 1.0
    salient: float = 0.0
    negated: float = 0.0


def asked_of(split: Split) -> Asked:
    """What the split says that its training captions tell."""
    return Asked(**{name: split.recipe[name] for name in Asked._fields if name in split.recipe})


def told_of(graph: SceneGraph, scene: Scene) -> list[str]:
    """What a graph says of each thing of its scene: "red cat", "cat" or ""; "small red cat", "small cat" or ""."""
    choices = [(phrase(thing), phrase(thing._replace(texture=""))) for thing in scene.things]
    return [next((said for said in either if said in graph.nodes), "") for either in choices]


def hints(graph: SceneGraph, scene: Scene) -> bool:
    """Whether `graph` tells nothing but the truth: one or more things, none twice, and the background."""
    told = [phrase for phrase in told_of(graph, scene) if phrase]
    said = sorted(node for node in graph.nodes if not node.startswith(NO))
    return bool(told) and not graph.edges and said == sorted([*told, scene.background]) and denies_truly(graph, scene)


def denies_truly(graph: SceneGraph, scene: Scene) -> bool:
    """Whether nothing that a graph denies is in the scene."""
    denied = {node.removeprefix(NO) for node in graph.nodes if node.startswith(NO)}
    return not denied & set(map(phrase, scene.things))


def salient_of(scene: Scene) -> int:
    """Which of two things is salient: the bigger one, else the first, which is the left one."""
    left, right = (SIZES.get(thing.size, 1.0) for thing in scene.things)
    return int(right > left)


def check_shares(split: Split) -> Iterator[Finding]:
    """Animals and textures are told as often as asked."""
    mentioned, attributes, salient, negated = asked = asked_of(split)
    if asked == Asked():
        return
    train = split.subsets["train"]
    told = [(scene, told_of(graph, scene)) for graph, scene in zip(train.graphs, train.scenes, strict=True)]
    pairs = [(salient_of(scene), phrases) for scene, phrases in told if len(phrases) == 2]
    both = sum(all(phrases) for _, phrases in pairs)
    alone = sum(bool(phrases[big]) and not phrases[1 - big] for big, phrases in pairs)
    chance = (1 - salient) * mentioned**2
    yield within("training pairs whose caption mentions both", both, len(pairs), chance)
    # Of two that aren't drawn either is taken, so that apart from the salient one both are alone as often.
    chance = salient + (1 - salient) * (1 - mentioned**2) / 2
    yield within("training pairs whose caption mentions the salient one only", alone, len(pairs), chance)
    mentions = sum(bool(said) for _, phrases in told for said in phrases)
    textured = sum(said in map(phrase, scene.things) for scene, phrases in told for said in phrases)
    yield within("mentions in train with their texture", textured, mentions, attributes)
    denying = sum(any(node.startswith(NO) for node in graph.nodes) for graph in train.graphs)
    yield within("captions in train that deny something", denying, len(train), negated)


def check_negatives(split: Split) -> Iterator[Finding]:
    """A training scene has a negative where its caption tells both textures, and nowhere else."""
    r = split.subsets["train"]
    strange = (
        scene.key
        for scene, graph, negative in zip(r.scenes, r.graphs, r.negatives, strict=True)
        if bool(negative) != all_told(graph, scene)
    )
    yield Finding("train has a negative where, and only where, both textures are told", *first(strange))


def all_told(graph: SceneGraph, scene: Scene) -> bool:
    """Whether a graph tells two things and both their textures."""
    told = set(map(phrase, scene.things))
    return len(told) == 2 and told <= set(graph.nodes)


CHECKS = (check_shares, check_negatives)

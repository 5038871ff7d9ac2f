"""The words of spatial relations, and whether a graph's edges are true of a scene."""

from functools import cache
from itertools import combinations, product

from envs.scene import Scene
from generators.captions.graph import Edge, SceneGraph
from generators.captions.phrases import phrase

# What is said of the thing in a relation's first slot, and of the one in its second (OC-CLIP, A.5.1).
PREDICATES: dict[str, tuple[str, str]] = {
    "left/right": ("to the left of", "to the right of"),
    "above/under": ("above", "under"),
}


# Predicate -> what is said the other way round.
CONVERSES = {one: other for both in PREDICATES.values() for one, other in (both, both[::-1])}


def claims(graph: SceneGraph) -> frozenset[str]:
    """All that `graph` claims, however it is put: its nodes, and its edges with the phrases in place
    of indices, "b to the right of a" as "a to the left of b".

    A small red cat is also a small cat, a red cat and a cat. Without a vocabulary that holds for all words but the
    last: a giant tortoise is a tortoise. Phrases are unique in our graphs.
    """
    claimed = {less for node in graph.nodes for less in shortened(node)}
    for predicate, subject, object_ in graph.edges:
        ends = [graph.nodes[subject], graph.nodes[object_]]
        if predicate in CONVERSES and CONVERSES[predicate] < predicate:
            predicate, ends = CONVERSES[predicate], ends[::-1]
        claimed.update(f"{one} {predicate} {other}" for one, other in product(*map(shortened, ends)))
    return frozenset(claimed)


@cache
def shortened(said: str) -> frozenset[str]:
    """ "red cat" -> "red cat", "cat": what is still true of a thing when words before the last are left out.
    Of what is denied ("no red cat") nothing may be left out."""
    if said.startswith("no "):
        return frozenset({said})
    *before, last = said.split()
    kept = (words for number in range(len(before) + 1) for words in combinations(before, number))
    return frozenset(" ".join((*words, last)) for words in kept)


def predicate_of(scene: Scene, subject: int) -> str:
    """What is said of thing number `subject` (0 or 1) of a scene with a relation."""
    return PREDICATES[scene.relation][subject]


def edge_holds(edge: Edge, graph: SceneGraph, scene: Scene) -> bool:
    """Whether one edge of `graph` is true of `scene`; one that refers to no thing is not. Nodes may leave out what
    they tell of their things: "cat" is a red cat."""
    ends = edge.subject, edge.object
    if scene.relation is None or not all(0 <= end < len(graph.nodes) for end in ends):
        return False
    subject, other = (graph.nodes[end] for end in ends)
    true_of = [shortened(phrase(thing)) for thing in scene.things]
    return any(
        subject in true_of[i] and other in true_of[1 - i] and edge.predicate == predicate_of(scene, i) for i in (0, 1)
    )

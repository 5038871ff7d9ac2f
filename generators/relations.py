"""The words of spatial relations, and whether a graph's edges are true of a scene."""

from itertools import product

from envs.scene import Scene
from generators.graph import Edge, SceneGraph

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

    A red cat is also a cat. Without a vocabulary that holds for all heads of a phrase: a giant tortoise is
    a tortoise. Phrases are unique in our graphs.
    """
    claimed = {head for node in graph.nodes for head in heads(node)}
    for predicate, subject, object_ in graph.edges:
        ends = [graph.nodes[subject], graph.nodes[object_]]
        if predicate in CONVERSES and CONVERSES[predicate] < predicate:
            predicate, ends = CONVERSES[predicate], ends[::-1]
        claimed.update(f"{one} {predicate} {other}" for one, other in product(*map(heads, ends)))
    return frozenset(claimed)


def heads(phrase: str) -> list[str]:
    """ "red cat" -> "red cat", "cat": what is still true of a thing when words are left out from the front.
    Of what is denied ("no red cat") nothing may be left out."""
    words = phrase.split()
    if words[0] == "no":
        return [phrase]
    return [" ".join(words[i:]) for i in range(len(words))]


def predicate_of(scene: Scene, subject: int) -> str:
    """What is said of thing number `subject` (0 or 1) of a scene with a relation."""
    return PREDICATES[scene.relation][subject]


def edge_holds(edge: Edge, graph: SceneGraph, scene: Scene) -> bool:
    """Whether one edge of `graph` is true of `scene`; one that refers to no thing is not."""
    phrases = [f"{thing.texture} {thing.animal}" for thing in scene.things]
    ends = edge.subject, edge.object
    if scene.relation is None or not all(0 <= end < len(graph.nodes) for end in ends):
        return False
    named = [graph.nodes[end] for end in ends]
    if set(named) != set(phrases) or len(set(named)) != 2:
        return False
    return edge.predicate == predicate_of(scene, phrases.index(named[0]))

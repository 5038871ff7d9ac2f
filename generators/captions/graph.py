"""Scene graphs, which hold the content of a caption as nodes and directed edges, and random errors like a parser's."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from menagerie.envs.scene import Object
from menagerie.generators.captions.phrases import attribute_words


class Edge(NamedTuple):
    """A directed relation between two nodes, given by their indices."""

    predicate: str
    subject: int
    object: int


class SceneGraph(NamedTuple):
    """Nodes are noun phrases ("red cat"); edges refer to them by index (OC-CLIP, section 3)."""

    nodes: tuple[str, ...]
    edges: tuple[Edge, ...] = ()


def without_nodes(graph: SceneGraph, share: float, random: np.random.Generator) -> SceneGraph:
    """Drop each node with probability `share`, together with its edges.

    At least one node stays. With the same random numbers, a node dropped at a lower share is also dropped at a higher
    one.
    """
    draws = random.random(len(graph.nodes))
    kept = np.flatnonzero((draws >= share) | (draws == draws.max())).tolist()
    number = {old: new for new, old in enumerate(kept)}
    edges = (
        Edge(edge.predicate, number[edge.subject], number[edge.object])
        for edge in graph.edges
        if edge.subject in number and edge.object in number
    )
    return SceneGraph(tuple(graph.nodes[i] for i in kept), tuple(edges))


def with_moved_attributes(
    graph: SceneGraph, share: float, known: Mapping[str, Object], random: np.random.Generator
) -> SceneGraph:
    """Move the attributes of each object to another object with probability `share`.

    "red cat" and "white dog" become "cat" and "red white dog", or "white cat" and "red dog" if both move. `known` maps
    the phrases of objects to objects (`menagerie.generators.captions.contents.phrases`). Other nodes, such as
    backgrounds, neither lose nor gain attributes. A graph with fewer than two objects stays as it is.
    """
    objects = [i for i, node in enumerate(graph.nodes) if node in known]
    if len(objects) < 2:
        return graph
    nodes = list(graph.nodes)
    received: dict[int, list[str]] = {}
    draws, steps = random.random(len(objects)), random.integers(1, len(objects), len(objects))
    for place, i in enumerate(objects):
        words = attribute_words(known[graph.nodes[i]])
        if words and draws[place] < share:
            nodes[i] = nodes[i].replace(f"{words} ", "", 1)
            received.setdefault(objects[(place + int(steps[place])) % len(objects)], []).append(words)
    for i, moved in received.items():
        nodes[i] = " ".join([*moved, nodes[i]])
    return graph._replace(nodes=tuple(nodes))

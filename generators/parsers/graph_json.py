"""Scene graphs as JSON, and whether what somebody else wrote is one."""

from collections.abc import Sequence
from typing import Any

from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.plain_text import plain_text

MOST_NODES = 64
LONGEST = 500  # characters of a phrase
ARTICLES = ("a", "an", "the")


class NotAGraph(ValueError):
    """Why something is no scene graph: "KIND: DETAIL"."""


def as_json(graph: SceneGraph) -> dict[str, Any]:
    """{"nodes": ["brown cat", "computer"], "edges": [["lying on", 0, 1]]}."""
    return {"nodes": list(graph.nodes), "edges": [list(edge) for edge in graph.edges]}


def from_json(content: Any) -> SceneGraph:
    """The graph that `as_json` wrote; raises `NotAGraph`."""
    nodes, edges = (content.get(key) if isinstance(content, dict) else None for key in ("nodes", "edges"))
    if not isinstance(nodes, list) or not isinstance(edges, list):
        raise NotAGraph("no graph: no lists 'nodes' and 'edges'")
    if not all(isinstance(edge, list) and len(edge) == 3 for edge in edges):
        raise NotAGraph("no graph: an edge is no list of three")
    return checked(nodes, edges)


def checked(nodes: Sequence[Any], edges: Sequence[Sequence[Any]]) -> SceneGraph:
    """The graph of texts and of triples (predicate, subject, object) of whatever types; raises `NotAGraph`."""
    if not nodes:
        raise NotAGraph("no nodes: there is nothing in it")
    if len(nodes) > MOST_NODES:
        raise NotAGraph(f"too large: {len(nodes)} nodes, more than {MOST_NODES}")
    for text in [*nodes, *(edge[0] for edge in edges)]:
        if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
            raise NotAGraph(f"no phrase: {str(text)[:40]!r}")
    for predicate, *ends in edges:
        if not all(type(end) is int for end in ends):  # exactly: true is no index
            raise NotAGraph(f"index: {ends} of {predicate[:40]!r} are no whole numbers")
        if not all(0 <= end < len(nodes) for end in ends):
            raise NotAGraph(f"index: {ends} of {predicate[:40]!r}, there are {len(nodes)} nodes")
        if ends[0] == ends[1]:
            raise NotAGraph(f"index: {predicate[:40]!r} relates {ends[0]} to itself")
    if len(set(map(tuple, edges))) < len(edges):
        raise NotAGraph("repeated: an edge stands there twice")
    return SceneGraph(tuple(nodes), tuple(Edge(*edge) for edge in edges))


def plain_phrase(text: str) -> str:
    """ "The brown Cat," -> "brown cat": as nodes are written, whoever parsed them; empty for an article alone."""
    first, *rest = plain_text(text).split() or [""]
    return " ".join(rest if first in ARTICLES else (first, *rest))


def plain_graph(graph: SceneGraph) -> SceneGraph:
    """A graph in plain phrases; raises `NotAGraph` where nothing is left of one."""
    nodes = [plain_phrase(node) for node in graph.nodes]
    edges = dict.fromkeys((plain_text(edge.predicate), edge.subject, edge.object) for edge in graph.edges)
    if not all([*nodes, *(predicate for predicate, *_ in edges)]):
        raise NotAGraph("no phrase: an article or punctuation alone")
    return SceneGraph(tuple(nodes), tuple(Edge(*edge) for edge in edges))

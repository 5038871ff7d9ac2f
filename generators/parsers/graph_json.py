"""Scene graphs as JSON: strict reading of graphs from outside, and a cache of parsed captions on disk."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from menagerie.envs.core.kept_answers import KeptAnswers
from menagerie.envs.core.locks import FileLock
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import plain_text

MOST_NODES = 64
LONGEST = 500  # characters of a phrase
ARTICLES = ("a", "an", "the")


class NotAGraph(ValueError):
    """Raised for something that isn't a scene graph. The text is "KIND: DETAIL"."""


def as_json(graph: SceneGraph) -> dict[str, Any]:
    """A graph for JSON: {"nodes": ["brown cat", "computer"], "edges": [["lying on", 0, 1]]}."""
    return {"nodes": list(graph.nodes), "edges": [list(edge) for edge in graph.edges]}


def from_json(content: Any) -> SceneGraph:
    """Read a graph that `as_json` wrote."""
    return make_graph(content["nodes"], content["edges"])


def make_graph(nodes: Sequence[Any], edges: Sequence[Sequence[Any]]) -> SceneGraph:
    """Make a graph of phrases and triples (predicate, subject, object). Checks types, lengths and indices, and raises
    `NotAGraph` if something is wrong.
    """
    if not nodes:
        raise NotAGraph("no nodes: there is nothing in it")
    if len(nodes) > MOST_NODES:
        raise NotAGraph(f"too large: {len(nodes)} nodes, more than {MOST_NODES}")
    for text in [*nodes, *(edge[0] for edge in edges)]:
        if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
            raise NotAGraph(f"no phrase: {str(text)[:40]!r}")
    for predicate, *ends in edges:
        if not all(type(end) is int for end in ends):  # `type`, because True is an int
            raise NotAGraph(f"index: {ends} of {predicate[:40]!r} are no whole numbers")
        if not all(0 <= end < len(nodes) for end in ends):
            raise NotAGraph(f"index: {ends} of {predicate[:40]!r}, there are {len(nodes)} nodes")
        if ends[0] == ends[1]:
            raise NotAGraph(f"index: {predicate[:40]!r} relates {ends[0]} to itself")
    if len(set(map(tuple, edges))) < len(edges):
        raise NotAGraph("repeated: an edge stands there twice")
    return SceneGraph(tuple(nodes), tuple(Edge(*edge) for edge in edges))


def plain_phrase(text: str) -> str:
    """A phrase as all parsers write nodes: "The brown Cat," -> "brown cat". An article alone gives ""."""
    first, *rest = plain_text(text).split() or [""]
    return " ".join(rest if first in ARTICLES else (first, *rest))


def plain_graph(graph: SceneGraph) -> SceneGraph:
    """Return a graph with all nodes and predicates in plain form. Raises `NotAGraph` if one becomes empty."""
    nodes = [plain_phrase(node) for node in graph.nodes]
    edges = dict.fromkeys((plain_text(edge.predicate), edge.subject, edge.object) for edge in graph.edges)
    if not all([*nodes, *(predicate for predicate, *_ in edges)]):
        raise NotAGraph("no phrase: an article or punctuation alone")
    return SceneGraph(tuple(nodes), tuple(Edge(*edge) for edge in edges))


Entry = tuple[SceneGraph | None, str]  # a graph; or None, and the reason


class ParseCache(KeptAnswers[Entry]):
    """The answers of one parser to captions."""

    about, file = "parser.json", "graphs.jsonl"

    @contextlib.contextmanager
    def hold_alone(self) -> Iterator[None]:
        """Wait for other processes that parse, read what they added, and keep them out. Raises without a lock."""
        with FileLock(self.folder / "parsing.lock"):
            self.read()
            yield

    def to_line(self, key: str, value: Entry) -> dict[str, Any]:
        graph, problem = value
        return {"caption": key, **(as_json(graph) if graph else {"problem": problem})}

    def from_line(self, content: Any) -> tuple[str, Entry]:
        if "problem" in content:
            return content["caption"], (None, content["problem"])
        return content["caption"], (from_json(content), "")

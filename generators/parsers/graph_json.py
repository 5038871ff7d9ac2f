"""Scene graphs as JSON: strict reading of graphs from outside, and a cache of parsed captions on disk."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_text
from menagerie.envs.core.identity import digest
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.reading import Unreadable
from menagerie.envs.core.sealed_lines import SealedLines
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
    """Read a graph that `as_json` wrote; raises `NotAGraph`."""
    nodes, edges = (content.get(key) if isinstance(content, dict) else None for key in ("nodes", "edges"))
    if not isinstance(nodes, list) or not isinstance(edges, list):
        raise NotAGraph("no graph: no lists 'nodes' and 'edges'")
    if not all(isinstance(edge, list) and len(edge) == 3 for edge in edges):
        raise NotAGraph("no graph: an edge is no list of three")
    return checked(nodes, edges)


def checked(nodes: Sequence[Any], edges: Sequence[Sequence[Any]]) -> SceneGraph:
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
    """Return a phrase in the form in which all parsers write nodes: "The brown Cat," -> "brown cat". An article alone
    gives ""."""
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


class ParseCache:
    """The answers of one parser on disk: a folder with `parser.json`, its identity, and `graphs.jsonl`, one line per
    caption.

    The folder's name below `root` depends on the identity, so each prompt or model has its own folder. Several
    processes may add at once; of two answers to one caption the first counts. Captions whose lines can't be used are
    parsed again (`SealedLines`).
    """

    def __init__(self, root: Path, name: str, identity: Mapping[str, Any]) -> None:
        """Read the existing entries; raises `UserError` if the folder can't be written to, or the file not read."""
        self.folder = root / f"{name}-{digest(identity)}"
        self._lines = SealedLines(self.path, self.folder.name)
        self._entries: dict[str, Entry] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / "parser.json").exists():
                write_text(self.folder / "parser.json", json.dumps(dict(identity), indent=1))
            self.damaged = self._read()
            """Number of lines that can't be used."""
        except Unreadable as error:
            raise UserError(f"{error}; delete it: its captions are parsed anew") from error
        except OSError as error:
            raise UserError(f"{self.folder} can't be written ({error.strerror}); choose another --parses") from error

    @property
    def path(self) -> Path:
        return self.folder / "graphs.jsonl"

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size if self.path.exists() else 0

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from parsing meanwhile. First waits for those that do, and reads what they added.

        Raises `Unwritable` if there can be no lock, and `Unreadable` if the file can't be read.
        """
        with FileLock(self.folder / "parsing.lock"):
            if self.size != self._seen:
                self._read()
            try:
                yield
            finally:
                self._seen = self.size

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, caption: str) -> Entry | None:
        """The entry of a caption; None if there is none."""
        return self._entries.get(caption)

    def add(self, caption: str, graph: SceneGraph | None, problem: str = "") -> None:
        """Add a caption with its graph, or with None and the reason why it has none."""
        what = as_json(graph) if graph else {"problem": problem}
        self._lines.add({"caption": caption, **what})
        self._entries.setdefault(caption, (graph, problem))

    def _read(self) -> int:
        """Read the file; returns the number of lines that can't be used."""
        self._seen = self.size  # before, because the file may grow meanwhile
        return self._lines.read(self._take)

    def _take(self, content: Any) -> None:
        caption, entry = entry_of(content)
        self._entries.setdefault(caption, entry)


def entry_of(content: Any) -> tuple[str, Entry]:
    """Read a caption and its entry from a line's object. Raises `NotAGraph`, a `ValueError`, for anything else."""
    caption = content.get("caption") if isinstance(content, dict) else None
    if not isinstance(caption, str):
        raise NotAGraph("no caption: a line of something else")
    if isinstance(problem := content.get("problem"), str):
        return caption, (None, problem)
    return caption, (from_json(content), "")

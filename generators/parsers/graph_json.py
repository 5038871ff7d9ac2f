"""Scene graphs as JSON: strict reading of graphs from outside, and a cache on disk of parsed captions."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_text, writing
from menagerie.envs.core.identity import digest
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.reading import Unreadable, read_lines
from menagerie.envs.core.records import sealed, unsealed
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
    """Make a graph of phrases and triples (predicate, subject, object), whose types are unchecked; raises
    `NotAGraph`.
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
    """A phrase in the form in which all parsers write nodes: "The brown Cat," -> "brown cat"; empty for an article
    alone."""
    first, *rest = plain_text(text).split() or [""]
    return " ".join(rest if first in ARTICLES else (first, *rest))


def plain_graph(graph: SceneGraph) -> SceneGraph:
    """A graph with all phrases in plain form; raises `NotAGraph` if one becomes empty."""
    nodes = [plain_phrase(node) for node in graph.nodes]
    edges = dict.fromkeys((plain_text(edge.predicate), edge.subject, edge.object) for edge in graph.edges)
    if not all([*nodes, *(predicate for predicate, *_ in edges)]):
        raise NotAGraph("no phrase: an article or punctuation alone")
    return SceneGraph(tuple(nodes), tuple(Edge(*edge) for edge in edges))


LONGEST_LINE, LARGEST = 1 << 20, 16 << 30  # bytes of a line and of the file
Entry = tuple[SceneGraph | None, str]  # a graph; or None, and the reason


class ParseCache:
    """The answers of one parser on disk: a folder with `parser.json`, its identity, and `graphs.jsonl`, one line per
    caption.

    The folder's name below `root` depends on the identity, so each prompt or model has its own. Lines are only added,
    each in one write with a digest; several processes may do so at once. Lines that a killed process left half-written,
    lines damaged on disk, and lines copied from another parser's folder are skipped, and their captions are parsed
    again.
    """

    def __init__(self, root: Path, name: str, identity: Mapping[str, Any]) -> None:
        """Read the existing entries; raises `UserError` if the folder can't be written to."""
        self.folder = root / f"{name}-{digest(identity)}"
        self.damaged = 0
        """Lines that were passed over."""
        self._entries: dict[str, Entry] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / "parser.json").exists():
                write_text(self.folder / "parser.json", json.dumps(dict(identity), indent=1))
            self._lock = FileLock(self.folder / "lock")
            self._read()
        except OSError as error:
            raise UserError(f"{self.folder} can't be written ({error.strerror}); choose another --parses") from error

    @property
    def path(self) -> Path:
        return self.folder / "graphs.jsonl"

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, caption: str) -> Entry | None:
        """The entry of a caption; None if there is none."""
        return self._entries.get(caption)

    def add(self, caption: str, graph: SceneGraph | None, problem: str = "") -> None:
        """Keep a graph, or None and the reason."""
        what = as_json(graph) if graph else {"problem": problem}
        line = sealed({"caption": caption, **what}, salt=self.folder.name).encode()
        with writing(self.path), self._lock, self.path.open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":  # a killed process left half a line
                line = b"\n" + line
            os.write(file.fileno(), line + b"\n")
        self._entries[caption] = graph, problem

    def _read(self) -> None:
        if not self.path.exists() and not self.path.is_symlink():
            return
        try:
            for line in read_lines(self.path, LONGEST_LINE, LARGEST):
                self._take(line)
        except Unreadable as error:
            raise UserError(f"{error}; delete it: its captions are parsed anew") from error

    def _take(self, line: bytes) -> None:
        try:
            caption, entry = read_line(line, self.folder.name)
        except ValueError:
            self.damaged += 1
        else:
            self._entries[caption] = entry


def read_line(line: bytes, owner: str) -> tuple[str, Entry]:
    """Read a line: a caption, and its entry by the parser whose folder is called `owner`.

    Raises `ValueError` for a line that is incomplete, damaged or of another parser.
    """
    content = unsealed(line.decode(), "a line", owner)
    caption = content.get("caption") if isinstance(content, dict) else None
    if not isinstance(caption, str):
        raise NotAGraph("no caption: a line of something else")
    if isinstance(problem := content.get("problem"), str):
        return caption, (None, problem)
    return caption, (from_json(content), "")

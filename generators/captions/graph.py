"""Scene graphs: the content of a caption, as nodes and directed edges."""

from typing import NamedTuple


class Edge(NamedTuple):
    """A directed relation between two nodes, given by their indices."""

    predicate: str
    subject: int
    object: int


class SceneGraph(NamedTuple):
    """Nodes are noun phrases ("red cat"); edges refer to them by index (OC-CLIP, section 3)."""

    nodes: tuple[str, ...]
    edges: tuple[Edge, ...] = ()

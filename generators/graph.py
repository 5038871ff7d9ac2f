"""Scene graphs: what a caption claims, as nodes and directed edges."""

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

    @property
    def claims(self) -> frozenset[str]:
        """All that the graph claims, whatever the mention order: its nodes, and its edges with
        the phrases in place of indices (phrases are unique within our synthetic graphs)."""
        edges = (f"{self.nodes[s]} {predicate} {self.nodes[o]}" for predicate, s, o in self.edges)
        return frozenset(self.nodes).union(edges)

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
    def meaning(self) -> str:
        """Text that two graphs share if and only if they claim the same, whatever the mention order.

        Node indices are replaced by the phrases, which are unique within our synthetic graphs.
        """
        edges = sorted(f"{self.nodes[s]} {predicate} {self.nodes[o]}" for predicate, s, o in self.edges)
        return "; ".join(sorted(self.nodes) + edges)

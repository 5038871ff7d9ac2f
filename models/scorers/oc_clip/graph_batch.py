"""Scene graphs of a batch as tensors, each distinct phrase once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from envs.common.errors import UserError
from generators.captions.graph import SceneGraph
from models.towers.tokenizers import Tokenizer

Arrangement = tuple[Int64[Tensor, "c e"], Int64[Tensor, "c e"]]


class GraphBatch(NamedTuple):
    """`c` graphs padded to the most nodes `m` and the most edges `e` among them."""

    phrases: Int64[Tensor, "u context"]
    """Token ids of the distinct nodes, in the order of their first mention."""
    predicates: Int64[Tensor, "v context"]
    """The same of the predicates."""
    phrase_of_node: Int64[Tensor, "c m"]
    node_present: Bool[Tensor, "c m"]
    predicate_of_edge: Int64[Tensor, "c e"]
    subjects: Int64[Tensor, "c e"]
    objects: Int64[Tensor, "c e"]
    edge_present: Bool[Tensor, "c e"]
    related: Int64[Tensor, " k"]
    """The graphs that have edges, of those that belong to images."""
    shuffled: Arrangement | None
    """Subjects and objects drawn anew (OC-CLIP, equation 6), where a generator was given."""

    def first(self, count: int) -> "GraphBatch":
        """The first graphs alone, which must be all that belong to images."""
        per_graph = ("phrase_of_node", "node_present", "predicate_of_edge", "subjects", "objects", "edge_present")
        kept = {name: getattr(self, name)[:count] for name in per_graph}
        shuffled = self.shuffled and (self.shuffled[0][:count], self.shuffled[1][:count])
        return self._replace(**kept, shuffled=shuffled)


@dataclass(frozen=True)
class GraphReader:
    """Scene graphs to a `GraphBatch`; the captions are not read."""

    tokenizer: Tokenizer
    context: int

    def __call__(
        self,
        captions: Sequence[str],
        graphs: Sequence[SceneGraph],
        generator: torch.Generator | None = None,
        own: int | None = None,
    ) -> GraphBatch:
        """Tensors of all graphs. A graph without a node raises: there is nothing to score."""
        for caption, graph in zip(captions, graphs, strict=True):
            if not graph.nodes:
                raise UserError(
                    f"the scene graph of {caption!r} is empty; give one with a node (`generators.parse` makes one)"
                )
        phrases = numbered(node for graph in graphs for node in graph.nodes)
        predicates = numbered(edge.predicate for graph in graphs for edge in graph.edges)
        phrase_of_node, node_present = pad([[phrases[node] for node in graph.nodes] for graph in graphs])
        predicate_of_edge, edge_present = pad([[predicates[e.predicate] for e in g.edges] for g in graphs])
        subjects, _ = pad([[edge.subject for edge in graph.edges] for graph in graphs])
        objects, _ = pad([[edge.object for edge in graph.edges] for graph in graphs])
        return GraphBatch(
            phrases=self.tokenizer(list(phrases), self.context),
            predicates=self.tokenizer(list(predicates), self.context),
            phrase_of_node=phrase_of_node,
            node_present=node_present,
            predicate_of_edge=predicate_of_edge,
            subjects=subjects,
            objects=objects,
            edge_present=edge_present,
            related=torch.tensor([i for i, graph in enumerate(graphs[:own]) if graph.edges], dtype=torch.int64),
            shuffled=shuffled_edges(subjects, objects, node_present, generator) if generator else None,
        )


def numbered(names: Iterable[str]) -> dict[str, int]:
    """Distinct names and their numbers, in the order of their first mention."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def pad(rows: Sequence[Sequence[int]]) -> tuple[Int64[Tensor, "c w"], Bool[Tensor, "c w"]]:
    """Rows of indices as one tensor with zeros behind, and where the indices are."""
    width = max(map(len, rows), default=0)
    indices = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], dtype=torch.int64)
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    return indices.reshape(len(rows), width), torch.arange(width) < lengths[:, None]


def shuffled_edges(
    subjects: Int64[Tensor, "c e"],
    objects: Int64[Tensor, "c e"],
    node_present: Bool[Tensor, "c m"],
    generator: torch.Generator,
) -> Arrangement:
    """Subjects and objects drawn anew from the graph's nodes (OC-CLIP, equation 6).

    A drawn edge is uniform over the ordered pairs of two different nodes that are not the
    true pair: redrawing the truth would make it its own negative. With two nodes that leaves
    the swap only.
    """
    n_nodes = node_present.sum(1, keepdim=True)
    n_pairs = (n_nodes * (n_nodes - 1)).clamp(min=2)  # ordered pairs; a graph with edges has at least two
    draw = torch.rand(subjects.shape, generator=generator)
    others = (draw * (n_pairs - 1)).long().clamp(max=n_pairs - 2)
    true = pair_number(subjects, objects, n_nodes)
    return pair_of_number(others + (others >= true), n_nodes)  # skip the true pair


def pair_number(
    subjects: Int64[Tensor, "c e"], objects: Int64[Tensor, "c e"], n_nodes: Int64[Tensor, "c 1"]
) -> Int64[Tensor, "c e"]:
    """Number of an ordered pair of different nodes, from 0 to n (n - 1) - 1."""
    return subjects * (n_nodes - 1) + objects - (objects > subjects).long()


def pair_of_number(number: Int64[Tensor, "c e"], n_nodes: Int64[Tensor, "c 1"]) -> Arrangement:
    """The inverse of `pair_number`."""
    others = (n_nodes - 1).clamp(min=1)
    subjects = number // others
    objects = number % others
    return subjects, objects + (objects >= subjects).long()

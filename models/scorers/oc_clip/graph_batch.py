"""Scene graphs of a batch as tensors, each distinct phrase once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.recipe import ALTERED
from menagerie.models.scorers.oc_clip.altered_graphs import Altered, pad, shuffled_edges, swapped_edges
from menagerie.models.towers.tokenizers import Tokenizer, cut_texts


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
    swapped: Altered | None
    """Subjects and objects exchanged, where a generator was given: in training."""
    shuffled: Altered | None
    """The same drawn anew."""

    def first(self, count: int) -> "GraphBatch":
        """The first graphs alone, which must be all that belong to images."""
        per_graph = ("phrase_of_node", "node_present", "predicate_of_edge", "subjects", "objects", "edge_present")
        kept = {name: getattr(self, name)[:count] for name in per_graph}
        more = {name: its.first(count) for name in ALTERED if (its := getattr(self, name))}
        return self._replace(**kept, **more)


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
                    f"the scene graph of {caption!r} is empty; give one with a node (`menagerie.parse` makes one)"
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
            swapped=swapped_edges(graphs) if generator else None,
            shuffled=shuffled_edges(graphs, generator) if generator else None,
        )

    def cut(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> list[bool]:
        """Whether a node or a predicate of each graph is longer than the context."""
        parts = [[*graph.nodes, *(edge.predicate for edge in graph.edges)] for graph in graphs]
        return [any(cut_texts(self.tokenizer, its, self.context)) for its in parts]


def numbered(names: Iterable[str]) -> dict[str, int]:
    """Distinct names and their numbers, in the order of their first mention."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}

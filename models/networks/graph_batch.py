"""Scene graphs of a batch as tensors, each distinct phrase once; and graphs with the same nodes and other edges, which
OC-CLIP's local loss holds against the true ones (A.1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.relations import CONVERSES
from menagerie.models.scorers.oc_clip import ALTERED
from menagerie.models.texts import Texts
from menagerie.models.towers.tokenizers import Tokenizer, cut_texts

Ends = tuple[int, int]  # subject and object


class Altered(NamedTuple):
    """The edges of `c` graphs between other nodes."""

    subjects: Int64[Tensor, "c e"]
    objects: Int64[Tensor, "c e"]
    exists: Bool[Tensor, " c"]
    """False where a graph has no such alternative."""

    def first(self, count: int) -> "Altered":
        """The edges of the first `count` graphs."""
        return Altered(*(tensor[:count] for tensor in self))


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
        more = {name: edges.first(count) for name in ALTERED if (edges := getattr(self, name))}
        return self._replace(**kept, **more)


@dataclass(frozen=True)
class GraphReader:
    """Scene graphs to a `GraphBatch`; the captions are not read."""

    tokenizer: Tokenizer
    context: int

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> GraphBatch:
        """Tensors of all graphs. A graph without a node raises: there is nothing to score."""
        check_nodes(texts)
        graphs = texts.graphs
        phrases = numbered(node for graph in graphs for node in graph.nodes)
        predicates = numbered(edge.predicate for graph in graphs for edge in graph.edges)
        phrase_of_node, node_present = pad([[phrases[node] for node in graph.nodes] for graph in graphs])
        predicate_of_edge, edge_present = pad([[predicates[e.predicate] for e in g.edges] for g in graphs])
        subjects, _ = pad([[edge.subject for edge in graph.edges] for graph in graphs])
        objects, _ = pad([[edge.object for edge in graph.edges] for graph in graphs])
        related = [i for i, graph in enumerate(graphs[: texts.matched]) if graph.edges]
        return GraphBatch(
            phrases=self.tokenizer(list(phrases), self.context),
            predicates=self.tokenizer(list(predicates), self.context),
            phrase_of_node=phrase_of_node,
            node_present=node_present,
            predicate_of_edge=predicate_of_edge,
            subjects=subjects,
            objects=objects,
            edge_present=edge_present,
            related=torch.tensor(related, dtype=torch.int64),
            swapped=swapped_edges(graphs) if generator else None,
            shuffled=shuffled_edges(graphs, generator) if generator else None,
        )

    def cut(self, texts: Texts) -> list[bool]:
        """Whether a node or a predicate of each graph is longer than the context."""
        phrases = [[*graph.nodes, *(edge.predicate for edge in graph.edges)] for graph in texts.graphs]
        return [any(cut_texts(self.tokenizer, row, self.context)) for row in phrases]


def check_nodes(texts: Texts) -> None:
    """Raise for a scene graph without a node."""
    for caption, graph in zip(texts.captions, texts.graphs, strict=True):
        if not graph.nodes:
            raise UserError(
                f"the scene graph of {caption!r} is empty; give one with a node (`menagerie.parse` makes one)"
            )


def numbered(names: Iterable[str]) -> dict[str, int]:
    """Distinct names and their numbers, in the order of their first mention."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def swapped_edges(graphs: Sequence[SceneGraph]) -> Altered:
    """Subjects and objects exchanged (equation 8).

    Where that says what the graph says, as of "a beside b" and "b beside a", there is no such graph.
    """
    ends = [[(edge.object, edge.subject) for edge in graph.edges] for graph in graphs]
    truths = [statements(graph.edges) for graph in graphs]
    return altered(ends, [truth != turned(truth) for truth in truths])


def shuffled_edges(graphs: Sequence[SceneGraph], generator: torch.Generator) -> Altered:
    """Subjects and objects drawn anew from the graph's nodes (equation 9), for each edge uniformly from its `others`.

    A graph with an edge that has none, such as any between two nodes, has no shuffled one.
    """
    choices = [others(len(graph.nodes), graph.edges) for graph in graphs]
    draws = iter(torch.rand(sum(map(len, choices)), generator=generator).tolist())
    drawn = [[(pairs, next(draws)) for pairs in options] for options in choices]
    ends = [[pairs[int(draw * len(pairs))] if pairs else (0, 0) for pairs, draw in row] for row in drawn]
    return altered(ends, [all(options) for options in choices])


@lru_cache(maxsize=4096)
def others(n_nodes: int, edges: tuple[Edge, ...]) -> tuple[tuple[Ends, ...], ...]:
    """For each edge, the ordered pairs of different nodes between which a shuffled graph may place it.

    Its subject is another than the true one, and so is its object. It says nothing that the graph or its swap says,
    else what is shuffled could be true, or equal the swap.
    """
    truth = statements(edges)
    known = truth | turned(truth)
    return tuple(
        tuple(
            (subject, object_)
            for subject, object_ in permutations(range(n_nodes), 2)
            if subject != edge.subject and object_ != edge.object
            if statement(Edge(edge.predicate, subject, object_)) not in known
        )
        for edge in edges
    )


def statement(edge: Edge) -> Edge:
    """Bring an edge into one form: "b to the right of a" becomes "a to the left of b"."""
    other = CONVERSES.get(edge.predicate, edge.predicate)
    return Edge(other, edge.object, edge.subject) if other < edge.predicate else edge


def statements(edges: Sequence[Edge]) -> frozenset[Edge]:
    """The statements of edges, each in its one form."""
    return frozenset(map(statement, edges))


def turned(said: frozenset[Edge]) -> frozenset[Edge]:
    """The same with subjects and objects exchanged."""
    return frozenset(Edge(edge.predicate, edge.object, edge.subject) for edge in said)


def altered(ends: Sequence[Sequence[Ends]], exists: Sequence[bool]) -> Altered:
    """The subjects and objects of graphs as padded tensors."""
    subjects, objects = (pad([[pair[k] for pair in row] for row in ends])[0] for k in (0, 1))
    return Altered(subjects, objects, torch.tensor(exists, dtype=torch.bool))


def pad(rows: Sequence[Sequence[int]]) -> tuple[Int64[Tensor, "c w"], Bool[Tensor, "c w"]]:
    """Rows of indices as one tensor with zeros behind, and where the indices are."""
    width = max(map(len, rows), default=0)
    indices = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], dtype=torch.int64)
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    return indices.reshape(len(rows), width), torch.arange(width) < lengths[:, None]

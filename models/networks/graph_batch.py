"""Scene graphs of a batch as tensors, each distinct phrase once; and altered graphs, with the same nodes but other
edges, for OC-CLIP's local loss (A.1)."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.relations import canonical_edge
from menagerie.models.scorers.oc_clip import ALTERED
from menagerie.models.texts import Texts, map_tensors
from menagerie.models.towers.tokenizers import Tokenizer, cut_texts

Ends = tuple[int, int]  # subject and object
Key = TypeVar("Key", bound=Hashable)


class Altered(NamedTuple):
    """The altered edges of `c` graphs."""

    subjects: Int64[Tensor, "c e"]
    objects: Int64[Tensor, "c e"]
    exists: Bool[Tensor, " c"]
    """False for a graph that can't be altered in this way."""


class GraphBatch(NamedTuple):
    """`c` graphs, padded to `m` nodes and `e` edges, the largest numbers among them."""

    phrases: Int64[Tensor, "u context"]
    """Token ids of the distinct nodes, in the order of their first mention."""
    predicates: Int64[Tensor, "v context"]
    """Token ids of the distinct predicates, in the order of their first mention."""
    phrase_of_node: Int64[Tensor, "c m"]
    node_present: Bool[Tensor, "c m"]
    predicate_of_edge: Int64[Tensor, "c e"]
    subjects: Int64[Tensor, "c e"]
    objects: Int64[Tensor, "c e"]
    edge_present: Bool[Tensor, "c e"]
    distinct: Int64[Tensor, " d"]
    """Indices of the graphs that differ from all before them."""
    number: Int64[Tensor, " c"]
    """For each graph, which of the distinct ones it equals."""
    related: Int64[Tensor, " k"]
    """Indices of the graphs that belong to images and have edges; of all graphs in a `block`."""
    swapped: Altered | None
    """Edges with subjects and objects exchanged; only in training, when a generator is given."""
    shuffled: Altered | None
    """Edges between randomly drawn nodes; only in training, when a generator is given."""

    def once(self) -> "GraphBatch":
        """The batch of the distinct graphs, without altered ones."""
        return self._replace(swapped=None, shuffled=None)._some(self.distinct)

    def first(self, count: int) -> "GraphBatch":
        """The batch of the first `count` graphs, which must include all that belong to images."""
        return self._some(slice(count))

    def block(self, rows: slice) -> "GraphBatch":
        """The batch of the graphs in `rows`. All count as `related`, but graphs without edges get no altered edges.
        They add nothing to a loss, because there is no alternative to compare with."""
        some = self._some(rows)
        edges = some.edge_present.any(1)
        altered = {name: each._replace(exists=each.exists & edges) for name in ALTERED if (each := getattr(some, name))}
        return some._replace(related=torch.arange(len(edges), device=edges.device), **altered)

    def _some(self, rows: slice | Int64[Tensor, " some"]) -> "GraphBatch":
        per_graph = ("phrase_of_node", "node_present", "predicate_of_edge", "subjects", "objects", "edge_present")
        kept = {name: getattr(self, name)[rows] for name in per_graph}
        more = {name: map_tensors(getattr(self, name), itemgetter(rows)) for name in ALTERED}
        alone = torch.arange(len(kept["node_present"]), device=self.number.device)  # none is known to equal another
        return self._replace(**kept, **more, distinct=alone, number=alone)


@dataclass(frozen=True)
class GraphReader:
    """Reads scene graphs as a `GraphBatch`, and ignores captions."""

    tokenizer: Tokenizer
    context: int

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> GraphBatch:
        """Make tensors of all graphs; raise for a graph without a node, which can't be scored."""
        check_nodes(texts)
        graphs = texts.graphs
        phrases = number_distinct(node for graph in graphs for node in graph.nodes)
        predicates = number_distinct(edge.predicate for graph in graphs for edge in graph.edges)
        phrase_of_node, node_present = pad([[phrases[node] for node in graph.nodes] for graph in graphs])
        predicate_of_edge, edge_present = pad([[predicates[e.predicate] for e in g.edges] for g in graphs])
        subjects, _ = pad([[edge.subject for edge in graph.edges] for graph in graphs])
        objects, _ = pad([[edge.object for edge in graph.edges] for graph in graphs])
        numbers = number_distinct(graphs)
        number = torch.tensor([numbers[graph] for graph in graphs], dtype=torch.int64)
        distinct = torch.from_numpy(np.unique(number.numpy(), return_index=True)[1])
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
            distinct=distinct,
            number=number,
            related=torch.tensor(related, dtype=torch.int64),
            swapped=swap_edges(graphs) if generator else None,
            shuffled=shuffle_edges(graphs, generator) if generator else None,
        )

    def cut(self, texts: Texts) -> list[bool]:
        """For each graph, whether a node or a predicate is longer than the context."""
        phrases = [[*graph.nodes, *(edge.predicate for edge in graph.edges)] for graph in texts.graphs]
        return [any(cut_texts(self.tokenizer, row, self.context)) for row in phrases]


def check_nodes(texts: Texts) -> None:
    """Raise for a scene graph without a node."""
    for caption, graph in zip(texts.captions, texts.graphs, strict=True):
        if not graph.nodes:
            raise UserError(
                f"the scene graph of {caption!r} is empty; give one with a node (`menagerie.parse` makes one)"
            )


def number_distinct(keys: Iterable[Key]) -> dict[Key, int]:
    """Number distinct keys in the order of their first mention."""
    return {key: number for number, key in enumerate(dict.fromkeys(keys))}


def swap_edges(graphs: Sequence[SceneGraph]) -> Altered:
    """Exchange subjects and objects of all edges (equation 8).

    A graph whose exchanged edges say the same, such as "a beside b" and "b beside a", has no swapped version.
    """
    ends = [[(edge.object, edge.subject) for edge in graph.edges] for graph in graphs]
    truths = [statements(graph.edges) for graph in graphs]
    return make_altered(ends, [truth != exchange_ends(truth) for truth in truths])


def shuffle_edges(graphs: Sequence[SceneGraph], generator: torch.Generator) -> Altered:
    """Draw other subjects and objects from the graph's nodes (equation 9), for each edge uniformly from its `others`.

    If an edge has none, as in a graph of two nodes, the graph has no shuffled version.
    """
    choices = [others(len(graph.nodes), graph.edges) for graph in graphs]
    draws = iter(torch.rand(sum(map(len, choices)), generator=generator).tolist())
    drawn = [[(pairs, next(draws)) for pairs in options] for options in choices]
    ends = [[pairs[int(draw * len(pairs))] if pairs else (0, 0) for pairs, draw in row] for row in drawn]
    return make_altered(ends, [all(options) for options in choices])


@lru_cache(maxsize=4096)
def others(n_nodes: int, edges: tuple[Edge, ...]) -> tuple[tuple[Ends, ...], ...]:
    """Return, for each edge, the ordered pairs of different nodes between which a shuffled graph may place it.

    Both subject and object differ from the true ones. The edge must not say anything that the graph or its swap says;
    otherwise the shuffled graph could be true, or equal to the swap.
    """
    truth = statements(edges)
    known = truth | exchange_ends(truth)
    return tuple(
        tuple(
            (subject, object_)
            for subject, object_ in permutations(range(n_nodes), 2)
            if subject != edge.subject and object_ != edge.object
            if canonical_edge(Edge(edge.predicate, subject, object_)) not in known
        )
        for edge in edges
    )


def statements(edges: Sequence[Edge]) -> frozenset[Edge]:
    """The distinct edges in canonical form."""
    return frozenset(map(canonical_edge, edges))


def exchange_ends(said: frozenset[Edge]) -> frozenset[Edge]:
    """The same statements with subjects and objects exchanged."""
    return frozenset(Edge(edge.predicate, edge.object, edge.subject) for edge in said)


def make_altered(ends: Sequence[Sequence[Ends]], exists: Sequence[bool]) -> Altered:
    """Make padded tensors of the subjects and objects of altered graphs."""
    subjects, objects = (pad([[pair[k] for pair in row] for row in ends])[0] for k in (0, 1))
    return Altered(subjects, objects, torch.tensor(exists, dtype=torch.bool))


def pad(rows: Sequence[Sequence[int]]) -> tuple[Int64[Tensor, "c w"], Bool[Tensor, "c w"]]:
    """Put rows of indices into one tensor, padded with zeros; return it with a mask that is False for padding."""
    width = max(map(len, rows), default=0)
    indices = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], dtype=torch.int64)
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    return indices.reshape(len(rows), width), torch.arange(width) < lengths[:, None]

"""Scene graphs with the same nodes and other edges: what the local loss holds against the true ones (OC-CLIP, A.1)."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.relations import CONVERSES

Ends = tuple[int, int]  # subject and object


class Altered(NamedTuple):
    """The edges of `c` graphs between other nodes."""

    subjects: Int64[Tensor, "c e"]
    objects: Int64[Tensor, "c e"]
    exists: Bool[Tensor, " c"]
    """False where a graph has no such alternative."""

    def first(self, count: int) -> "Altered":
        """Those of the first graphs alone."""
        return Altered(*(tensor[:count] for tensor in self))


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
    drawn = [[(its, next(draws)) for its in options] for options in choices]
    ends = [[its[int(draw * len(its))] if its else (0, 0) for its, draw in row] for row in drawn]
    return altered(ends, [all(options) for options in choices])


@lru_cache(maxsize=4096)
def others(n_nodes: int, edges: tuple[Edge, ...]) -> tuple[tuple[Ends, ...], ...]:
    """For each edge the ordered pairs of different nodes between which a shuffled graph may have it.

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
    """What an edge says, in one form: "b to the right of a" as "a to the left of b"."""
    other = CONVERSES.get(edge.predicate, edge.predicate)
    return Edge(other, edge.object, edge.subject) if other < edge.predicate else edge


def statements(edges: Sequence[Edge]) -> frozenset[Edge]:
    """All that edges say."""
    return frozenset(map(statement, edges))


def turned(said: frozenset[Edge]) -> frozenset[Edge]:
    """The same with subjects and objects exchanged."""
    return frozenset(Edge(edge.predicate, edge.object, edge.subject) for edge in said)


def altered(ends: Sequence[Sequence[Ends]], exists: Sequence[bool]) -> Altered:
    """The subjects and objects of graphs as padded tensors."""
    subjects, objects = (pad([[its[k] for its in row] for row in ends])[0] for k in (0, 1))
    return Altered(subjects, objects, torch.tensor(exists, dtype=torch.bool))


def pad(rows: Sequence[Sequence[int]]) -> tuple[Int64[Tensor, "c w"], Bool[Tensor, "c w"]]:
    """Rows of indices as one tensor with zeros behind, and where the indices are."""
    width = max(map(len, rows), default=0)
    indices = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], dtype=torch.int64)
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    return indices.reshape(len(rows), width), torch.arange(width) < lengths[:, None]

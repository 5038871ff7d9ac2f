"""Scene graphs as index tensors: each distinct phrase and predicate once per batch."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from generators.captions.graph import SceneGraph


class GraphBatch(NamedTuple):
    """`c` graphs padded to the most nodes `m` and the most edges `e` among them."""

    phrases: list[str]
    predicates: list[str]
    phrase_of_node: Int64[Tensor, "c m"]
    node_present: Bool[Tensor, "c m"]
    predicate_of_edge: Int64[Tensor, "c e"]
    subjects: Int64[Tensor, "c e"]
    objects: Int64[Tensor, "c e"]
    edge_present: Bool[Tensor, "c e"]


def pad(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Int64[Tensor, "c w"], Bool[Tensor, "c w"]]:
    """Rows of indices as one tensor with zeros behind, and where the indices are."""
    width = max(map(len, rows), default=0)
    indices = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], dtype=torch.int64)
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    present = torch.arange(width) < lengths[:, None]
    return indices.reshape(len(rows), width).to(device), present.to(device)


def batch_graphs(graphs: Sequence[SceneGraph], device: torch.device) -> GraphBatch:
    """Tensors of all graphs; phrases and predicates in the order of their first mention."""
    phrases = list(dict.fromkeys(node for graph in graphs for node in graph.nodes))
    predicates = list(dict.fromkeys(edge.predicate for graph in graphs for edge in graph.edges))
    phrase_index = {phrase: i for i, phrase in enumerate(phrases)}
    predicate_index = {predicate: i for i, predicate in enumerate(predicates)}
    phrase_of_node, node_present = pad([[phrase_index[node] for node in graph.nodes] for graph in graphs], device)
    predicate_of_edge, edge_present = pad([[predicate_index[e.predicate] for e in g.edges] for g in graphs], device)
    subjects, _ = pad([[edge.subject for edge in graph.edges] for graph in graphs], device)
    objects, _ = pad([[edge.object for edge in graph.edges] for graph in graphs], device)
    return GraphBatch(
        phrases, predicates, phrase_of_node, node_present, predicate_of_edge, subjects, objects, edge_present
    )


Arrangement = tuple[Int64[Tensor, "c e"], Int64[Tensor, "c e"]]


def perturb_edges(graphs: GraphBatch, generator: torch.Generator) -> tuple[Arrangement, Arrangement]:
    """Subjects and objects swapped, and drawn anew from the graph's nodes (OC-CLIP, equation 6).

    A drawn edge is uniform over the ordered pairs of two different nodes that are not the
    true pair: redrawing the truth would make it its own negative. With two nodes that leaves
    the swap only.
    """
    n_nodes = graphs.node_present.sum(1, keepdim=True)
    n_pairs = (n_nodes * (n_nodes - 1)).clamp(min=2)  # ordered pairs; a graph with edges has at least two
    draw = torch.rand(graphs.subjects.shape, generator=generator).to(graphs.subjects.device)
    others = (draw * (n_pairs - 1)).long().clamp(max=n_pairs - 2)
    true = pair_number(graphs.subjects, graphs.objects, n_nodes)
    number = others + (others >= true)  # skip the true pair
    return (graphs.objects, graphs.subjects), pair_of_number(number, n_nodes)


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

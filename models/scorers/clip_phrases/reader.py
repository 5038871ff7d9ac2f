"""The phrases of scene graphs as tensors, each distinct one once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.scorers.oc_clip.altered_graphs import pad
from menagerie.models.scorers.oc_clip.graph_batch import numbered
from menagerie.models.towers.tokenizers import Tokenizer, cut_texts


class PhraseBatch(NamedTuple):
    """The phrases of m graphs, of which u are distinct, padded to the most of a graph, k."""

    tokens: Int64[Tensor, "u context"]
    number: Int64[Tensor, "m k"]
    """Which of the distinct phrases each is."""
    present: Bool[Tensor, "m k"]


@dataclass(frozen=True)
class PhraseReader:
    """Scene graphs to a `PhraseBatch`; the captions are not read."""

    tokenizer: Tokenizer
    context: int

    def __call__(
        self,
        captions: Sequence[str],
        graphs: Sequence[SceneGraph],
        generator: torch.Generator | None = None,
        own: int | None = None,
    ) -> PhraseBatch:
        """Token ids of all phrases. A graph without a node raises: there is nothing to score."""
        for caption, graph in zip(captions, graphs, strict=True):
            if not graph.nodes:
                raise UserError(f"the scene graph of {caption!r} has no node; give one that has")
        numbers = numbered(phrase for graph in graphs for phrase in phrases_of(graph))
        number, present = pad([[numbers[phrase] for phrase in phrases_of(graph)] for graph in graphs])
        return PhraseBatch(self.tokenizer(list(numbers), self.context), number, present)

    def cut(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> list[bool]:
        """Whether a phrase of each graph is longer than the context."""
        return [any(cut_texts(self.tokenizer, list(phrases_of(graph)), self.context)) for graph in graphs]


def phrases_of(graph: SceneGraph) -> Iterator[str]:
    """All that a graph says, in phrases: its nodes, and each edge as "red cat to the left of white dog".

    Without the edges a graph and the one with its subject and object exchanged would have the same phrases.
    """
    yield from graph.nodes
    for edge in graph.edges:
        yield f"{graph.nodes[edge.subject]} {edge.predicate} {graph.nodes[edge.object]}"


def mean_over_phrases(values: Float[Tensor, "*n m k"], present: Bool[Tensor, "m k"]) -> Float[Tensor, "*n m"]:
    """The mean of a number per phrase over the phrases that a graph has."""
    return (values * present).sum(-1) / present.sum(-1)

"""CLIP on the phrases of scene graphs: controls for OC-CLIP, which reads such graphs.

Each node, and each edge with its two nodes, is a phrase: a text of its own for CLIP's text tower.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.networks.clip import CLIPScorer
from menagerie.models.networks.graph_batch import check_nodes, numbered, pad
from menagerie.models.scorers.clip import CLIPConfig
from menagerie.models.texts import Texts
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.tokenizers import Tokenizer, cut_texts


class PhraseBatch(NamedTuple):
    """The phrases of m graphs, of which u are distinct, padded to the most of a graph, k."""

    tokens: Int64[Tensor, "u context"]
    number: Int64[Tensor, "m k"]
    """For each phrase, the row of `tokens` that holds it."""
    present: Bool[Tensor, "m k"]


@dataclass(frozen=True)
class PhraseReader:
    """Scene graphs to a `PhraseBatch`; the captions are not read."""

    tokenizer: Tokenizer
    context: int

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> PhraseBatch:
        """Token ids of all phrases. A graph without a node raises: there is nothing to score."""
        check_nodes(texts)
        phrases = [list(phrases_of(graph)) for graph in texts.graphs]
        numbers = numbered(chain.from_iterable(phrases))
        number, present = pad([[numbers[phrase] for phrase in row] for row in phrases])
        return PhraseBatch(self.tokenizer(list(numbers), self.context), number, present)

    def cut(self, texts: Texts) -> list[bool]:
        """Whether a phrase of each graph is longer than the context."""
        return [any(cut_texts(self.tokenizer, list(phrases_of(graph)), self.context)) for graph in texts.graphs]


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


class PhraseSumScorer(CLIPScorer):
    """CLIP with one vector per image, and one per graph: the sum of its phrases' unit vectors, at length 1.

    A control: OC-CLIP reads graphs and CLIP captions, so a lead of OC-CLIP could be that of the graph. This one knows
    as much of the text as OC-CLIP does, and nothing else of OC-CLIP: the image is one vector, compared with one vector
    by its cosine.
    """

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: CLIPConfig | None = None) -> None:
        super().__init__(towers, texts, config)
        self.reader = PhraseReader(self.reader.tokenizer, self.reader.context)

    def encode_texts(self, texts: PhraseBatch) -> Float[Tensor, "m d"]:
        """Unit vectors of the graphs; distinct phrases are encoded once each."""
        phrases = F.normalize(self.towers.text.pooled(texts.tokens), dim=-1)
        return F.normalize((phrases[texts.number] * texts.present[..., None]).sum(1), dim=-1)

    def paired(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Cosine of image i and graph i."""
        return (images * texts).sum(-1)


class TextCode(NamedTuple):
    """Unit vectors of the distinct phrases, and the graphs that have them."""

    vectors: Float[Tensor, "u d"]
    phrases: PhraseBatch


class PhraseInteractionScorer(CLIPScorer):
    """Late interaction (after FILIP, Yao et al. 2022): the mean over a graph's phrases of the cosine with the
    patch that fits each best.

    A control: it has the graph that OC-CLIP reads and looks at patches as OC-CLIP does, but no queries compete: each
    phrase takes the patch that fits it best, whatever the others take. Where it differs from FILIP:

    - Phrases in place of tokens.
    - One similarity, the mean over phrases of the best patch, in place of one for either direction: FILIP's other one,
      the mean over patches of the best token, asks that each patch be described.
    """

    needs = "tokens"

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: CLIPConfig | None = None) -> None:
        super().__init__(towers, texts, config)
        self.reader = PhraseReader(self.reader.tokenizer, self.reader.context)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n p d"]:
        """Unit vectors of the patches, by the image tower's LayerNorm and projection; CLS is no patch."""
        tower = self.towers.image
        return F.normalize(tower.project(tower.tokens(pixels).states[:, 1:]), dim=-1)

    def encode_texts(self, texts: PhraseBatch) -> TextCode:
        """Distinct phrases encoded once each."""
        return TextCode(F.normalize(self.towers.text.pooled(texts.tokens), dim=-1), texts)

    def similarity(self, images: Float[Tensor, "n p d"], texts: TextCode) -> Float[Tensor, "n m"]:
        """All pairs; each distinct phrase meets each image once."""
        best = torch.einsum("npd,ud->nup", images, texts.vectors).amax(-1)
        return mean_over_phrases(best[:, texts.phrases.number], texts.phrases.present)

    def paired(self, images: Float[Tensor, "n p d"], texts: TextCode) -> Float[Tensor, " n"]:
        """Image i and graph i."""
        phrases = texts.vectors[texts.phrases.number]
        return mean_over_phrases((phrases @ images.transpose(1, 2)).amax(-1), texts.phrases.present)

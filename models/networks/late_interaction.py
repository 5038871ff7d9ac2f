"""FILIP (Yao et al. 2022): late interaction of patches and words, with CLIP's towers and temperature.

Section 3.1. With unit vectors v_k of the p patches of an image and u_r of the q words of a text,

    s_I = 1/p sum_k max_r <v_k, u_r>        (equation 4)
    s_T = 1/q sum_r max_k <v_k, u_r>        (equation 5)

Each image chooses among texts by s_I, and each text among images by s_T (equations 1 and 2).

Where we differ from the paper:

- With `symmetric` the score of a pair, by which tests choose, is (s_I + s_T) / 2, because our tests need one number
  for a pair. Without it, both losses and the score use s_T alone.
- With `negatives` the loss draws that many negatives from the batch, to show the effect of their number.
- We compare patches without CLS, and all tokens of a text, start and end included. As in the paper, padding is left
  out.
- With `tokens` "pooled" an image has one vector, CLS, and a text one, its end token: CLIP, with this loss.
- All vectors are compared. The paper sends only the quarter of tokens that score highest between GPUs (section 3.1),
  and adds prompts and augmentations of texts (sections 3.2 and 3.3), which are not part of the similarity.

CLIP on the phrases of scene graphs: controls for OC-CLIP, which reads such graphs.

Each node, and each edge with its two nodes, becomes a phrase that CLIP's text tower encodes by itself.
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
from menagerie.models.networks.graph_batch import check_nodes, number_distinct, pad
from menagerie.models.networks.pairs import draw_wrong_images, draw_wrong_texts, info_nce
from menagerie.models.objectives import Targets, contrastive_losses
from menagerie.models.scorer import Sharing
from menagerie.models.scorers.clip import CLIPConfig, FILIPConfig
from menagerie.models.texts import Texts, by_images
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.features import Layer, TextRows
from menagerie.models.towers.tokenizers import Tokenizer, cut_texts


class Words(NamedTuple):
    """The unit vectors of m texts' tokens."""

    vectors: Float[Tensor, "m t d"]
    present: Bool[Tensor, "m t"]


class Sides(NamedTuple):
    """The two similarities of pairs: s_I, by patches, and s_T, by words."""

    by_patches: Float[Tensor, "*n m"]
    by_words: Float[Tensor, "*n m"]


class FILIPScorer(CLIPScorer):
    """The scorer FILIP: unit vectors of patches and words, each compared with its best match on the other side."""

    config_class = FILIPConfig
    needs = "tokens"

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n p d"]:
        """Unit vectors of the patches, or of CLS alone."""
        tower = self.towers.image
        states, _, pooled = tower.tokens(pixels)
        return F.normalize(tower.project(pooled[:, None] if self.pooled else states[:, 1:]), dim=-1)

    def encode_texts(self, texts: Int64[Tensor, "m context"]) -> Words:
        """Unit vectors of the words, or of the end token alone."""
        tower = self.towers.text
        states, present, pooled = tower.tokens(texts)
        if self.pooled:
            states, present = pooled[:, None], torch.ones_like(present[:, :1])
        return Words(F.normalize(tower.project(states), dim=-1), present)

    @property
    def sharing(self) -> Sharing:
        """How processes share a step. With `negatives` the loss draws from all images, so it gets all embeddings."""
        return Sharing(images="gathered" if self.config.negatives else "block")

    @property
    def pooled(self) -> bool:
        """Whether each image and each text has a single vector."""
        return self.config.tokens == "pooled"

    def similarity(self, images: Float[Tensor, "n p d"], texts: Words) -> Float[Tensor, "n m"]:
        return self.score(self.sides(images, texts))

    def pair_similarity(self, images: Float[Tensor, "n p d"], texts: Words) -> Float[Tensor, " n"]:
        return self.score(best_matches(images @ texts.vectors.transpose(1, 2), texts.present))

    def sides(self, images: Float[Tensor, "n p d"], texts: Words) -> Sides:
        """Both similarities of every image with every text, some images at a time if memory is short."""

        def compare(some: Float[Tensor, "n p d"]) -> Sides:
            return best_matches(torch.einsum("npd,mtd->nmpt", some, texts.vectors), texts.present)

        return by_images(compare, images, 12 * images.shape[1] * texts.present.numel())

    def score(self, sides: Sides) -> Float[Tensor, "*n m"]:
        """The score of each pair, from its two similarities."""
        return (sides.by_patches + sides.by_words) / 2 if self.config.symmetric else sides.by_words

    def loss(self, images: Float[Tensor, "n p d"], texts: Words, targets: Targets) -> Float[Tensor, ""]:
        """InfoNCE. Images choose by s_I, or by s_T unless `symmetric`; texts choose by s_T."""
        sides, scale = self.sides(images, texts), self.logit_scale()
        if not self.config.symmetric:
            sides = Sides(sides.by_words, sides.by_words)
        if self.config.negatives:
            return loss_with_few_negatives(Sides(*(scale * side for side in sides)), targets, self.config.negatives)
        by_image, _ = contrastive_losses(sides.by_patches, scale, targets)
        _, by_text = contrastive_losses(sides.by_words, scale, targets)
        return (by_image + by_text) / 2

    def image_parts(self, embedding: Float[Tensor, "n p d"], tokens: Layer | None) -> dict[str, Layer]:
        """The unit vectors that are compared."""
        return {"whole" if self.pooled else "projected": Layer(embedding)}

    def text_parts(self, embedding: Words, tokens: Layer | None) -> dict[str, Layer]:
        """The unit vectors that are compared."""
        return {"whole" if self.pooled else "words": Layer(embedding.vectors, embedding.present)}

    def paired_slots(self, images: Float[Tensor, "n p d"], texts: Words) -> Layer:
        """For each word of text i, the patch of image i that fits it best (n, t, d)."""
        chosen = (texts.vectors @ images.transpose(1, 2)).argmax(-1)
        return Layer(images.take_along_dim(chosen[..., None], dim=1), texts.present)


def loss_with_few_negatives(logits: Sides, targets: Targets, count: int) -> Float[Tensor, ""]:
    """InfoNCE of each image's own text against `count` wrong texts, and of the text's image likewise."""
    texts, images = draw_wrong_texts(targets, count), draw_wrong_images(targets, count)
    by_image = info_nce(logits.by_patches.diagonal(), logits.by_patches.gather(1, texts.number), texts.usable)
    rows = logits.by_words[:, : len(logits.by_words)].T
    by_text = info_nce(rows.diagonal(), rows.gather(1, images.number), images.usable)
    return (by_image + by_text) / 2


def best_matches(cosines: Float[Tensor, "*n m p t"], present: Bool[Tensor, "m t"]) -> Sides:
    """Return both similarities, given the cosine of each patch with each word. Padding is never a patch's best word,
    and doesn't count in the mean over words."""
    by_patches = cosines.masked_fill(~present[:, None], -torch.inf).amax(-1).mean(-1)
    return Sides(by_patches, (cosines.amax(-2) * present).sum(-1) / present.sum(-1))


class PhraseBatch(NamedTuple):
    """The phrases of m graphs, of which u are distinct, padded to k, the largest number in a graph."""

    tokens: Int64[Tensor, "u context"]
    number: Int64[Tensor, "m k"]
    """Row of `tokens` that holds each phrase."""
    present: Bool[Tensor, "m k"]


@dataclass(frozen=True)
class PhraseReader:
    """Reads scene graphs as a `PhraseBatch`, and ignores captions."""

    tokenizer: Tokenizer
    context: int

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> PhraseBatch:
        """Token ids of all phrases; raises for a graph without a node, which can't be scored."""
        check_nodes(texts)
        phrases = [list(graph_phrases(graph)) for graph in texts.graphs]
        numbers = number_distinct(chain.from_iterable(phrases))
        number, present = pad([[numbers[phrase] for phrase in row] for row in phrases])
        return PhraseBatch(self.tokenizer(list(numbers), self.context), number, present)

    def cut(self, texts: Texts) -> list[bool]:
        """For each graph, whether one of its phrases is longer than the context."""
        return [any(cut_texts(self.tokenizer, list(graph_phrases(graph)), self.context)) for graph in texts.graphs]


def graph_phrases(graph: SceneGraph) -> Iterator[str]:
    """Yield a graph's phrases: its nodes, and each edge as "red cat to the left of white dog".

    Without the edges, exchanging a graph's subject and object would leave the phrases the same.
    """
    yield from graph.nodes
    for edge in graph.edges:
        yield f"{graph.nodes[edge.subject]} {edge.predicate} {graph.nodes[edge.object]}"


def mean_over_phrases(values: Float[Tensor, "*n m k"], present: Bool[Tensor, "m k"]) -> Float[Tensor, "*n m"]:
    """Average the numbers of each graph's phrases."""
    return (values * present).sum(-1) / present.sum(-1)


class PhraseScorer(CLIPScorer):
    """A scorer that reads the phrases of graphs."""

    sharing = Sharing("tower")

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: CLIPConfig) -> None:
        super().__init__(towers, texts, config)
        self.reader = PhraseReader(self.reader.tokenizer, self.reader.context)

    def text_rows(self, texts: PhraseBatch) -> TextRows:
        """Which rows of the text tower's output are the phrases of each graph."""
        return TextRows(texts.number, texts.present)


class PhraseSumScorer(PhraseScorer):
    """CLIP with one vector per image, and one per graph: the sum of its phrases' unit vectors, scaled to length 1.

    A control: OC-CLIP reads graphs and CLIP reads captions, so an advantage of OC-CLIP could come from the graph. This
    scorer has OC-CLIP's text input, but nothing else of it: an image and a graph are one vector each, compared by
    cosine.
    """

    def encode_texts(self, texts: PhraseBatch) -> Float[Tensor, "m d"]:
        """Unit vectors of the graphs; each distinct phrase is encoded once."""
        phrases = F.normalize(self.towers.text.pool(texts.tokens), dim=-1)
        return F.normalize((phrases[texts.number] * texts.present[..., None]).sum(1), dim=-1)

    def pair_similarity(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """The cosine of image i with graph i."""
        return (images * texts).sum(-1)


class TextEmbedding(NamedTuple):
    """Unit vectors of the distinct phrases, and the graphs that have them."""

    vectors: Float[Tensor, "u d"]
    phrases: PhraseBatch


class PhraseInteractionScorer(PhraseScorer):
    """A scorer with late interaction (after FILIP, Yao et al. 2022): the score is the mean over a graph's phrases of
    the cosine with the best patch.

    A control. Like OC-CLIP it reads graphs and looks at patches, but queries don't compete: each phrase takes its best
    patch, whatever other phrases take. Where it differs from FILIP:

    - Phrases in place of tokens.
    - One direction only, the mean over phrases of the best patch. FILIP's other direction, the mean over patches of
      the best token, would require that the text describes each patch.
    """

    needs = "tokens"

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n p d"]:
        """Unit vectors of the patches, after the image tower's LayerNorm and projection, without CLS."""
        tower = self.towers.image
        return F.normalize(tower.project(tower.tokens(pixels).states[:, 1:]), dim=-1)

    def encode_texts(self, texts: PhraseBatch) -> TextEmbedding:
        """Encode each distinct phrase once."""
        return TextEmbedding(F.normalize(self.towers.text.pool(texts.tokens), dim=-1), texts)

    def similarity(self, images: Float[Tensor, "n p d"], texts: TextEmbedding) -> Float[Tensor, "n m"]:
        """The score of every image with every graph; each distinct phrase is compared with each image once."""
        best = by_images(
            lambda some: torch.einsum("npd,ud->nup", some, texts.vectors).amax(-1),
            images,
            8 * len(texts.vectors) * images.shape[1],
        )
        return mean_over_phrases(best[:, texts.phrases.number], texts.phrases.present)

    def image_parts(self, embedding: Float[Tensor, "n p d"], tokens: Layer | None) -> dict[str, Layer]:
        """The unit vectors of the patches."""
        return {"projected": Layer(embedding)}

    def text_parts(self, embedding: TextEmbedding, tokens: Layer | None) -> dict[str, Layer]:
        """The unit vectors of each graph's phrases."""
        return {"phrases": Layer(embedding.vectors[embedding.phrases.number], embedding.phrases.present)}

    def paired_slots(self, images: Float[Tensor, "n p d"], texts: TextEmbedding) -> Layer:
        """For each phrase of graph i, the patch of image i that fits it best (n, k, d)."""
        best = (texts.vectors[texts.phrases.number] @ images.transpose(1, 2)).argmax(-1)
        return Layer(images.take_along_dim(best[..., None], dim=1), texts.phrases.present)

    def pair_similarity(self, images: Float[Tensor, "n p d"], texts: TextEmbedding) -> Float[Tensor, " n"]:
        """The score of image i with graph i."""
        phrases = texts.vectors[texts.phrases.number]
        return mean_over_phrases((phrases @ images.transpose(1, 2)).amax(-1), texts.phrases.present)

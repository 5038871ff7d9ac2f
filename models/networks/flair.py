"""FLAIR (Xiao et al. 2025): each text pools the patches of an image by its own attention.

The score is that of `get_logits` in the published code (ExplainableML/flair): the cosine of a text with the image
vector that this text pooled. Patches and CLS share the image tower's LayerNorm and projection.

Where we differ from the published code:

- In each step one caption of each image is drawn to be compared with all other images. The published code draws one
  for each other image.
- A text that is true of an image without being its caption is neither positive nor negative
  (`menagerie.models.training.targets`), because a part of a caption is true of many images of our worlds. A text that
  means the same as one of the image's captions is positive.
- Negatives that belong to no image are further columns of both losses; the divisor doesn't change.
- The published code adds up losses of blocks over several GPUs, each divided by its own number of texts; our batch is
  one block.
- The paper's captions are merged sentences of long descriptions. Ours are the image's caption and parts of it: some of
  the objects that it describes, in any order (`menagerie.generators.captions.contents`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.models.networks.clip import CaptionReader
from menagerie.models.networks.graph_batch import number_distinct
from menagerie.models.objectives import Targets, sigmoid_loss
from menagerie.models.scorer import Scorer, Sharing
from menagerie.models.scorers.flair import FLAIRConfig
from menagerie.models.texts import Texts, by_images
from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.features import Layer, TextRows


class TextBatch(NamedTuple):
    """m texts, of which u are distinct, because parts of captions are often equal."""

    tokens: Int64[Tensor, "u context"]
    number: Int64[Tensor, " m"]
    """Row of `tokens` that holds each text."""
    draw: Float[Tensor, " m"]
    """A random number for each text, in training: of each image's captions, the one with the highest number is compared
    with other images."""


@dataclass(frozen=True)
class CaptionsReader(CaptionReader):
    """Reads captions as token ids, each distinct text once, and ignores graphs."""

    captions: int
    """Number of captions of each image in a training batch (see `menagerie.models.training.feed`)."""

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> TextBatch:
        """Token ids of every distinct caption."""
        numbers = number_distinct(texts.captions)
        number = torch.tensor([numbers[text] for text in texts.captions], dtype=torch.int64)
        draw = torch.rand(len(number), generator=generator) if generator else torch.zeros(len(number))
        return TextBatch(self.tokenizer(list(numbers), self.context), number, draw)


class TextConditionedPooling(nn.Module):
    """Attention from a text to patches, with an extra zero token for texts that fit no patch.

    Query, keys and values have a LayerNorm each. There is no residual path, through which the text itself would reach
    the image's vector.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise UserError(f"--flair.heads {heads} doesn't divide the towers' width {width}; choose one that does")
        self.query_norm, self.key_norm, self.value_norm = (nn.LayerNorm(width) for _ in range(3))
        self.attention = nn.MultiheadAttention(width, heads, add_zero_attn=True, batch_first=True)

    def forward(self, texts: Float[Tensor, "n c d"], patches: Float[Tensor, "n p d"]) -> Float[Tensor, "n c d"]:
        """The vector that each of an image's c texts pools from it."""
        keys, values = self.key_norm(patches), self.value_norm(patches)
        return self.attention(self.query_norm(texts), keys, values, need_weights=False)[0]


class ImageEmbedding(NamedTuple):
    """An image's tokens, projected to the space of texts."""

    whole: Float[Tensor, "n d"]
    """Unit vectors of the CLS tokens."""
    patches: Float[Tensor, "n p d"]


class TextEmbedding(NamedTuple):
    """Vectors of texts, not normalised, and the random numbers of `TextBatch`."""

    vectors: Float[Tensor, "m d"]
    draw: Float[Tensor, " m"]


class FLAIRScorer(Scorer):
    """The scorer FLAIR: each text pools the patches of an image by attention, and is compared with the result."""

    config_class = FLAIRConfig
    sharing = Sharing("tower")

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: FLAIRConfig) -> None:
        super().__init__(towers, texts, config.logit_scale)
        self.config = config
        built = build_towers(towers, texts)
        built.require_patches("flair")
        self.take_towers(built)
        self.reader = CaptionsReader(built.tokenizer, built.context, config.captions)
        self.bias = nn.Parameter(torch.tensor(config.logit_bias))
        self.pooling = TextConditionedPooling(built.image.projection.shape[1], config.heads)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> ImageEmbedding:
        """All tokens of the images, normalised and projected by the tower's layers."""
        tokens = self.towers.image.project(self.towers.image.tokens(pixels).states)
        return ImageEmbedding(F.normalize(tokens[:, 0], dim=-1), tokens[:, 1:])

    def encode_texts(self, texts: TextBatch) -> TextEmbedding:
        """Encode each distinct text once."""
        return TextEmbedding(self.towers.text.pool(texts.tokens).index_select(0, texts.number), texts.draw)

    def similarity(self, images: ImageEmbedding, texts: TextEmbedding) -> Float[Tensor, "n m"]:
        """The cosine of every text with what it pools from every image."""
        return self.fit(images, texts.vectors.expand(len(images.patches), -1, -1))

    def pair_similarity(self, images: ImageEmbedding, texts: TextEmbedding) -> Float[Tensor, " n"]:
        """The cosine of text i with what it pools from image i."""
        return self.fit(images, texts.vectors[:, None])[:, 0]

    def fit(self, images: ImageEmbedding, texts: Float[Tensor, "n c d"]) -> Float[Tensor, "n c"]:
        """The cosine of each of an image's c texts with what it pools from that image."""
        each = 4 * 8 * texts.shape[1] * texts.shape[2]

        def compare(some: tuple[ImageEmbedding, Tensor]) -> Tensor:
            return F.cosine_similarity(self.pooling(some[1], some[0].patches), some[1], dim=-1)

        return by_images(compare, (images, texts), each)

    def image_parts(self, embedding: ImageEmbedding, tokens: Layer | None) -> dict[str, Layer]:
        """Projected patches, which texts pool, and the projected CLS, which the loss compares with texts too."""
        return {"projected": Layer(embedding.patches), "whole": Layer(embedding.whole[:, None])}

    def text_parts(self, embedding: TextEmbedding, tokens: Layer | None) -> dict[str, Layer]:
        """The vector of each text."""
        return {"whole": Layer(embedding.vectors[:, None])}

    def text_rows(self, texts: TextBatch) -> TextRows:
        """The row of the text tower's output for each text; equal texts share one."""
        number = texts.number[:, None]
        return TextRows(number, torch.ones_like(number, dtype=torch.bool))

    def paired_slots(self, images: ImageEmbedding, texts: TextEmbedding) -> Layer:
        """What text i pools from image i (n, 1, d)."""
        return Layer(self.pooling(texts.vectors[:, None], images.patches))

    def loss(self, images: ImageEmbedding, texts: TextEmbedding, targets: Targets) -> Float[Tensor, ""]:
        """The mean of the text-conditioned sigmoid loss and the multi-positive sigmoid loss."""
        scale, n = self.logit_scale(), targets.images
        each = targets.matched // n
        columns = texts_to_compare(texts.draw, n, targets.matched)[targets.rows]
        right, left_out = targets.same.gather(1, columns), torch.zeros_like(columns, dtype=torch.bool)
        if targets.masked is not None:
            left_out = targets.masked.gather(1, columns)
        number = torch.arange(columns.shape[1], device=columns.device) - each
        mine = torch.arange(n, device=columns.device)[targets.rows, None]
        twice = number == mine  # already among its captions
        conditioned = scale * self.fit(images, texts.vectors[columns]) + self.bias
        whole = scale * images.whole @ F.normalize(texts.vectors, dim=-1).T + self.bias
        first = sigmoid_loss(conditioned, right, left_out | twice, n + each - 1)
        return (first + sigmoid_loss(whole, targets.same, targets.masked, targets.matched)) / 2


def texts_to_compare(draw: Float[Tensor, " m"], n: int, matched: int) -> Int64[Tensor, "n c"]:
    """The texts, by number, with which each image is compared by text-conditioned pooling.

    First the image's captions, then one caption of each image (its own is left out later), then all negatives. Text i +
    kn is caption k of image i; texts after the first `matched` are negatives.
    """
    images = torch.arange(n, device=draw.device)
    mine = images[:, None] + n * torch.arange(matched // n, device=draw.device)
    one_of_each = images + n * draw[:matched].reshape(-1, n).argmax(0)
    negatives = torch.arange(matched, len(draw), device=draw.device)
    return torch.cat([mine, torch.cat([one_of_each, negatives]).expand(n, -1)], dim=1)

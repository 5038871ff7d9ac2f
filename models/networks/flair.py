"""FLAIR (Xiao et al. 2025): an image's patches are pooled by the text that they are compared with.

The score is `get_logits` of the published code (ExplainableML/flair): the cosine of a text with the
image as this very text pools it. Patches and CLS share the image tower's LayerNorm and projection.

Where we differ from the published code:

- Of each image the one caption that other images are compared with is drawn once a step, not once for each of them.
- Texts that are true of an image though not its captions are neither right nor wrong of it
  (`menagerie.models.training.targets`): a
  part of a caption is true of many images of our worlds. A text that means what one of its captions means is right.
- Negatives without an image are further columns of both losses, which are divided as without them.
- Over several GPUs it adds up losses of blocks, each divided by its own number of texts; a batch here is one.
- Its captions are merged sentences of long descriptions; ours are the image's caption and parts of it: some of the
  things that it describes, in any order (`menagerie.generators.captions.contents`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.models.networks.clip import CaptionReader
from menagerie.models.networks.graph_batch import numbered
from menagerie.models.objectives import Targets, sigmoid_loss
from menagerie.models.recipe import Recipe
from menagerie.models.scorer import Scorer
from menagerie.models.scorers.flair import FLAIRConfig
from menagerie.models.texts import Texts
from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import TextSpace, TowerConfig


class TextBatch(NamedTuple):
    """m texts, of which u are distinct: parts of captions are alike more often than not."""

    tokens: Int64[Tensor, "u context"]
    number: Int64[Tensor, " m"]
    """For each text, the row of `tokens` that holds it."""
    draw: Float[Tensor, " m"]
    """A random number for each, in training: of an image's captions the one with the highest is compared with the other
    images."""


@dataclass(frozen=True)
class CaptionsReader(CaptionReader):
    """Captions to token ids, each distinct text once; the graphs are not read."""

    captions: int
    """How many captions of each image a training batch should have (see `menagerie.models.training.feed`)."""

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> TextBatch:
        """Token ids of every distinct caption."""
        numbers = numbered(texts.captions)
        number = torch.tensor([numbers[text] for text in texts.captions], dtype=torch.int64)
        draw = torch.rand(len(number), generator=generator) if generator else torch.zeros(len(number))
        return TextBatch(self.tokenizer(list(numbers), self.context), number, draw)


class TextConditionedPooling(nn.Module):
    """Attention of a text to patches, with a zero token beside them for texts that none of them fits.

    Query, keys and values have a LayerNorm each; there is no residual path, else the text would reach the image's
    vector by itself.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise UserError(f"--flair.heads {heads} doesn't divide the towers' width {width}; choose one that does")
        self.query_norm, self.key_norm, self.value_norm = (nn.LayerNorm(width) for _ in range(3))
        self.attention = nn.MultiheadAttention(width, heads, add_zero_attn=True, batch_first=True)

    def forward(self, texts: Float[Tensor, "n c d"], patches: Float[Tensor, "n p d"]) -> Float[Tensor, "n c d"]:
        """Image i as each of its c texts sees it."""
        keys, values = self.key_norm(patches), self.value_norm(patches)
        return self.attention(self.query_norm(texts), keys, values, need_weights=False)[0]


class ImageCode(NamedTuple):
    """Tokens of an image in the space of texts."""

    whole: Float[Tensor, "n d"]
    """The vectors of the CLS tokens, of length 1."""
    patches: Float[Tensor, "n p d"]


class TextCode(NamedTuple):
    """Vectors of texts, not normalised, and the random numbers of `TextBatch`."""

    vectors: Float[Tensor, "m d"]
    draw: Float[Tensor, " m"]


class FLAIRScorer(Scorer):
    """A scorer in which each text pools the patches of an image for itself, and is compared with the result."""

    config_class = FLAIRConfig

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: FLAIRConfig | None = None) -> None:
        config = config or FLAIRConfig()
        super().__init__(towers, texts, config.logit_scale)
        self.config = config
        built = build_towers(towers, texts)
        built.require_patches("flair")
        self.take_towers(built)
        self.reader = CaptionsReader(built.tokenizer, built.context, config.captions)
        self.bias = nn.Parameter(torch.tensor(config.logit_bias))
        self.pooling = TextConditionedPooling(built.image.projection.shape[1], config.heads)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> ImageCode:
        """All tokens, normalised and projected by the tower's layers."""
        tokens = self.towers.image.project(self.towers.image.tokens(pixels).states)
        return ImageCode(F.normalize(tokens[:, 0], dim=-1), tokens[:, 1:])

    def encode_texts(self, texts: TextBatch) -> TextCode:
        """Distinct texts encoded once each."""
        return TextCode(self.towers.text.pooled(texts.tokens).index_select(0, texts.number), texts.draw)

    def similarity(self, images: ImageCode, texts: TextCode) -> Float[Tensor, "n m"]:
        """Image i as text j pools it against text j, for all pairs."""
        return self.fit(images, texts.vectors.expand(len(images.patches), -1, -1))

    def paired(self, images: ImageCode, texts: TextCode) -> Float[Tensor, " n"]:
        """Image i as text i pools it against text i."""
        return self.fit(images, texts.vectors[:, None])[:, 0]

    def fit(self, images: ImageCode, texts: Float[Tensor, "n c d"]) -> Float[Tensor, "n c"]:
        """The cosine of each image's c texts with the image as they pool it."""
        return F.cosine_similarity(self.pooling(texts, images.patches), texts, dim=-1)

    def loss(self, images: ImageCode, texts: TextCode, targets: Targets, recipe: Recipe) -> Float[Tensor, ""]:
        """The mean of the text-conditioned and of the multi-positive sigmoid loss."""
        scale, n = self.logit_scale(), len(images.whole)
        each = targets.matched // n
        columns = compared(texts.draw, n, targets.matched)
        right, left_out = targets.same.gather(1, columns), torch.zeros_like(columns, dtype=torch.bool)
        if targets.masked is not None:
            left_out = targets.masked.gather(1, columns)
        number = torch.arange(columns.shape[1], device=columns.device) - each
        twice = number == torch.arange(n, device=columns.device)[:, None]  # the image's caption among one of each image
        conditioned = scale * self.fit(images, texts.vectors[columns]) + self.bias
        whole = scale * images.whole @ F.normalize(texts.vectors, dim=-1).T + self.bias
        first = sigmoid_loss(conditioned, right, left_out | twice, n + each - 1)
        return (first + sigmoid_loss(whole, targets.same, targets.masked, targets.matched)) / 2


def compared(draw: Float[Tensor, " m"], n: int, matched: int) -> Int64[Tensor, "n c"]:
    """The numbers of the texts that each image is compared with when they pool it.

    First the captions of the image, then one of each image (the one of this image is to be left out), then all
    negatives. Text i + kn is caption k of image i; texts behind the first `matched` are negatives.
    """
    images = torch.arange(n, device=draw.device)
    mine = images[:, None] + n * torch.arange(matched // n, device=draw.device)
    one_of_each = images + n * draw[:matched].reshape(-1, n).argmax(0)
    negatives = torch.arange(matched, len(draw), device=draw.device)
    return torch.cat([mine, torch.cat([one_of_each, negatives]).expand(n, -1)], dim=1)

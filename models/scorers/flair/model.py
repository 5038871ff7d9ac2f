"""FLAIR (Xiao et al. 2025): an image's patches are pooled by the text that they are compared with.

The score is `get_logits` of the published code (ExplainableML/flair): the cosine of a text with the
image as this very text pools it. Patches and CLS share the image tower's LayerNorm and projection.

Where we differ from the published code:

- Of each image the one caption that other images are compared with is drawn once a step, not once for each of them.
- Texts that are true of an image though not its own are neither right nor wrong of it
  (`menagerie.models.training.targets`): a
  part of a caption is true of many images of our worlds. A text that means what one of the image's own means is right.
- Negatives without an image are further columns of both losses, which are divided as without them.
- Over several GPUs it adds up losses of blocks, each divided by its own number of texts; a batch here is one.
- Its captions are merged sentences of long descriptions; ours are the image's caption and parts of it: some of the
  things that it describes, in any order (`menagerie.generators.captions.contents`).
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.models.objectives import Targets, sigmoid_loss
from menagerie.models.readouts.tokens import image_tokens
from menagerie.models.recipe import Recipe
from menagerie.models.scorer import Scorer, tower_parameters
from menagerie.models.scorers.flair.pooling import TextConditionedPooling
from menagerie.models.scorers.flair.reader import CaptionsReader, TextBatch
from menagerie.models.scorers.flair.spec import FLAIRConfig
from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import TextSpace, TowerConfig


class ImageCode(NamedTuple):
    """Tokens of an image in the space of texts."""

    whole: Float[Tensor, "n d"]
    """Of CLS, unit vectors."""
    patches: Float[Tensor, "n p d"]


class TextCode(NamedTuple):
    """Vectors of texts, not normalised, and the random numbers of `TextBatch`."""

    vectors: Float[Tensor, "m d"]
    draw: Float[Tensor, " m"]


class FLAIRScorer(Scorer):
    """Each text pools the patches of an image for itself, and is compared with what it gets."""

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
        self.pooling = TextConditionedPooling(self.model.visual.proj.shape[1], config.heads)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> ImageCode:
        """All tokens, normalised and projected by the tower's own layers."""
        tokens = image_tokens(self.model, pixels).states @ self.model.visual.proj
        return ImageCode(F.normalize(tokens[:, 0], dim=-1), tokens[:, 1:])

    def encode_texts(self, texts: TextBatch) -> TextCode:
        """Distinct texts encoded once each."""
        return TextCode(self.model.encode_text(texts.tokens).index_select(0, texts.number), texts.draw)

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
        each = targets.own // n
        columns = compared(texts.draw, n, targets.own)
        right, left_out = targets.same.gather(1, columns), torch.zeros_like(columns, dtype=torch.bool)
        if targets.masked is not None:
            left_out = targets.masked.gather(1, columns)
        number = torch.arange(columns.shape[1], device=columns.device) - each
        twice = number == torch.arange(n, device=columns.device)[:, None]  # its own among one of each image
        conditioned = scale * self.fit(images, texts.vectors[columns]) + self.bias
        whole = scale * images.whole @ F.normalize(texts.vectors, dim=-1).T + self.bias
        first = sigmoid_loss(conditioned, right, left_out | twice, n + each - 1)
        return (first + sigmoid_loss(whole, targets.same, targets.masked, targets.own)) / 2

    def backbones(self) -> dict[str, list[nn.Parameter]]:
        """The two towers; pooling, temperature and bias are FLAIR's own."""
        return tower_parameters(self.model)


def compared(draw: Float[Tensor, " m"], n: int, own: int) -> Int64[Tensor, "n c"]:
    """The numbers of the texts that each image is compared with when they pool it.

    First its own, then one of each image, its own among them (to be left out), then all negatives. Text i + kn is
    caption k of image i; texts behind the first `own` are negatives.
    """
    images = torch.arange(n, device=draw.device)
    mine = images[:, None] + n * torch.arange(own // n, device=draw.device)
    one_of_each = images + n * draw[:own].reshape(-1, n).argmax(0)
    negatives = torch.arange(own, len(draw), device=draw.device)
    return torch.cat([mine, torch.cat([one_of_each, negatives]).expand(n, -1)], dim=1)

"""CLIP with losses over each image's own false captions: CE-CLIP (Zhang et al. 2024), FSC-CLIP (Oh et al. 2024).

Scores and towers are CLIP's. s_ij is a scaled cosine, n_ik is false caption k of image i, t_i its caption:

- CE-CLIP: InfoNCE with all false captions as further columns (NegCLIP's), plus
  rank_weight mean_ik max(0, threshold + s(i, n_ik) - s_ii), plus
  text_weight mean_i (-log p_i), p_i the softmax over scale cos(t_i, n) for all false captions n of the batch, at the
  first of them. So captions are kept away from false captions as texts, except from that one.
  The threshold is mean s_ii - mean s(i, n_ik) of the step before, limited to 0 and 10, 0 at first, without gradient
  (sections 3.2, 3.3; the text loss as in the published code since March 2024).
- FSC-CLIP: InfoNCE of images and captions alone, plus global_weight HN(s) + patch_weight HN(l), with
  HN = mean_i sum_k y_k (1 - p_k)^gamma (-log p_k), p the softmax over an image's caption and its K own false captions,
  y = 1 - smoothing + smoothing / (K + 1) for the caption and smoothing / (K + 1) for each other (sections 3.2, 3.3).
  l is the log-sum-exp over words, without the start token, of the scaled cosine of a word with a mean of patches. The
  mean is weighted by the word's products with the patches, which are rescaled to lie between 0 and 1 and divided by
  their sum, without gradient.

Where we differ from the published code (lezhang7/Enhance-FineGrained, ytaek-oh/fsc-clip), with sizes in
docs/scorers.md:

- Images may have different numbers of false captions; means are over those that exist. In the published code missing
  ones count as 0 in CE-CLIP's mean, and as a logit of 0 in FSC-CLIP's softmax. FSC-CLIP leaves out images without false
  captions, and so do we.
- One threshold for all kinds of false captions, where CE-CLIP has one for each.
- A false caption of one image that is true of another is left out of the other's text loss.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from menagerie.models.networks.clip import CLIPScorer, EmbeddedScorer
from menagerie.models.objectives import Targets, contrastive_loss
from menagerie.models.scorer import Sharing
from menagerie.models.scorers.further_texts import CECLIPConfig, FSCCLIPConfig
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.features import Layer

LARGEST_THRESHOLD = 10.0  # the authors' --upper-bound


class CECLIPScorer(CLIPScorer):
    """CLIP trained with CE-CLIP's losses."""

    config_class = CECLIPConfig
    sharing = Sharing(images="gathered")

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: CECLIPConfig) -> None:
        super().__init__(towers, texts, config)
        self.register_buffer("threshold", torch.zeros(()))

    def loss(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"], targets: Targets) -> Float[Tensor, ""]:
        """InfoNCE with false captions, plus the ranking loss and the loss between texts."""
        scale, cosines = self.logit_scale(), images @ texts.T
        loss = contrastive_loss(cosines, scale, targets)
        if targets.owner is None:
            return loss
        own, false = scale * cosines.diagonal(), texts[targets.matched :]
        wrong = scale * (images[targets.owner] * false).sum(-1)
        rank = F.relu(self.threshold + wrong - own[targets.owner]).mean()
        if self.training:
            self.threshold.copy_((own.mean() - wrong.mean()).detach().clamp(0, LARGEST_THRESHOLD))
        between = scale * texts[: len(images)] @ false.T
        usable = torch.ones_like(between, dtype=torch.bool)
        if targets.masked is not None:
            usable = ~targets.masked[:, targets.matched :]
        contrast = text_loss(between, usable)
        return loss + self.config.rank_weight * rank + self.config.text_weight * contrast


def text_loss(logits: Float[Tensor, "n k"], usable: Bool[Tensor, "n k"]) -> Float[Tensor, ""]:
    """Return CE-CLIP's text loss: the mean cross-entropy of each caption's first usable false caption among all that
    are usable, given scaled cosines of captions and false captions. A caption without any counts as 0."""
    some = usable.any(1)
    logits = logits.masked_fill(~usable & some[:, None], -torch.inf)
    first = usable.int().argmax(1)
    return (F.cross_entropy(logits, first, reduction="none") * some).mean()


class ImageEmbedding(NamedTuple):
    """Unit vectors of n images, and vectors of their patches: of length 1 in C2LIP, as projected in FSC-CLIP."""

    vectors: Float[Tensor, "n d"]
    patches: Float[Tensor, "n p d"]


class TextEmbedding(NamedTuple):
    """Unit vectors of m texts and of their words."""

    vectors: Float[Tensor, "m d"]
    words: Float[Tensor, "m t d"]
    present: Bool[Tensor, "m t"]


class PatchScorer(EmbeddedScorer):
    """CLIP whose loss also compares patches."""

    needs = "patches"

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> ImageEmbedding:
        """Unit vectors of the images, and of the patches for the loss."""
        tower = self.towers.image
        vectors = F.normalize(tower.project(tower.tokens(pixels).states), dim=-1)
        return ImageEmbedding(vectors[:, 0], vectors[:, 1:])

    def image_parts(self, embedding: ImageEmbedding, tokens: Layer | None) -> dict[str, Layer]:
        """The unit vectors of patches and image."""
        return {"projected": Layer(embedding.patches), "whole": Layer(embedding.vectors[:, None])}


class FSCCLIPScorer(PatchScorer):
    """CLIP trained with FSC-CLIP's losses."""

    config_class = FSCCLIPConfig
    sharing = Sharing(images="gathered")
    needs = "tokens"

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: FSCCLIPConfig) -> None:
        super().__init__(towers, texts, config)
        self.starts = self.towers.starts

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> ImageEmbedding:
        """Unit vectors of the images, and projected patches for the loss."""
        tower = self.towers.image
        states, _, pooled = tower.tokens(pixels)
        return ImageEmbedding(F.normalize(tower.project(pooled), dim=-1), tower.project(states[:, 1:]))

    def image_parts(self, embedding: ImageEmbedding, tokens: Layer | None) -> dict[str, Layer]:
        """The unit vectors of patches and image."""
        return super().image_parts(embedding._replace(patches=F.normalize(embedding.patches, dim=-1)), tokens)

    def encode_texts(self, texts: Int64[Tensor, "m context"]) -> TextEmbedding:
        """Unit vectors of the texts, and of the words for the loss."""
        tower = self.towers.text
        states, present, pooled = tower.tokens(texts)
        whole, words = (F.normalize(tower.project(part), dim=-1) for part in (pooled, states))
        return TextEmbedding(whole, words, present)

    def text_parts(self, embedding: TextEmbedding, tokens: Layer | None) -> dict[str, Layer]:
        """The unit vectors of words and text."""
        return {"words": Layer(embedding.words, embedding.present), "whole": Layer(embedding.vectors[:, None])}

    def loss(self, images: ImageEmbedding, texts: TextEmbedding, targets: Targets) -> Float[Tensor, ""]:
        """InfoNCE of captions, plus HN by vectors and by words over each image's caption and its false captions."""
        scale, config, n = self.logit_scale(), self.config, len(images.vectors)
        masked = None if targets.masked is None else targets.masked[:, : targets.matched]
        captions = Targets(targets.same[:, : targets.matched], masked, targets.matched)
        loss = contrastive_loss(images.vectors @ texts.vectors[: targets.matched].T, scale, captions)
        if targets.owner is None:
            return loss
        number = torch.cat([torch.arange(n, device=targets.owner.device), targets.owner])  # of each text's image
        rows = torch.cat([number[:n], torch.arange(targets.matched, len(texts.words), device=number.device)])
        vectors = scale * (images.vectors[number] * texts.vectors[rows]).sum(-1)
        counted = torch.arange(texts.present.shape[1], device=rows.device) >= self.starts
        words = fit_of_words(images.patches[number], texts.words[rows], (texts.present & counted)[rows], scale)
        parts = (choice_loss(logits, number, n, config.gamma, config.smoothing) for logits in (vectors, words))
        by_vectors, by_words = parts
        return loss + config.global_weight * by_vectors + config.patch_weight * by_words


def fit_of_words(
    patches: Float[Tensor, "b p d"],
    words: Float[Tensor, "b t d"],
    present: Bool[Tensor, "b t"],
    scale: Float[Tensor, ""],
) -> Float[Tensor, " b"]:
    """Return l: the log-sum-exp over words of each word's scaled cosine with its weighted mean of patches."""
    products = (words @ patches.transpose(1, 2)).detach()
    least, most = products.amin(-1, keepdim=True), products.amax(-1, keepdim=True)
    weights = (products - least) / (most - least).clamp_min(1e-12)  # padding may have equal patches
    weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-12)
    cosines = scale * F.cosine_similarity(weights @ patches, words, dim=-1)
    return cosines.masked_fill(~present, -torch.inf).logsumexp(-1)


def choice_loss(
    logits: Float[Tensor, " b"], image: Int64[Tensor, " b"], n: int, gamma: float, smoothing: float
) -> Float[Tensor, ""]:
    """Return HN: the smoothed focal loss of each image's caption (one of the first n logits) among it and the image's
    false captions, as a mean over images that have any. `image` says to which image each logit belongs."""
    mine = image == torch.arange(n, device=image.device)[:, None]
    logs = logits.expand(n, -1).masked_fill(~mine, -torch.inf).log_softmax(1).masked_fill(~mine, 0)
    count = mine.sum(1).to(logits.dtype)
    focal = (-torch.expm1(logs)).clamp_min(1e-12) ** gamma * -logs
    share = (smoothing / count)[:, None] * mine
    chosen = (1 - smoothing) * focal.diagonal() + (share * focal).sum(1)
    some = count > 1
    return chosen.masked_fill(~some, 0).sum() / some.sum().clamp_min(1)

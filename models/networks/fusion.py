"""Early fusion: the text tower reads each text together with an image, and says whether they match.

The score of a pair is one logit, a linear map of the state of the text's end token behind the last block, after the
tower's last LayerNorm: log P(match) - log P(no match). Scores use no vector of an image or a text. Losses over scores:

- "matching" (ALBEF: Li et al. 2021, section 3.2, equation 4): the mean cross-entropy of match or no match over each
  image's own pair, its pairs with k wrong texts, and the pairs of its text with k wrong images.
- "infonce": the mean of two cross-entropies, of each image's own text against k wrong texts, and of each text's own
  image against k wrong images.

With `hard`, wrong pairs are drawn with probability softmax(scale cosine) of vectors (ALBEF's hard negatives). These
vectors come from CLS and from the text tower without the image, as in BLIP. They are trained by InfoNCE, which is added
to the loss. Without `hard`, draws are uniform. An image's own false captions, if the recipe has any, are drawn before
all other texts.

Where we differ from ALBEF and BLIP:

- A text that means the same as an image's own, or is true of it, is never drawn. They exclude the diagonal alone.
- All blocks of CLIP's causal text tower see the image; ALBEF's first six don't, and their towers aren't causal.
- One logit, not two: a softmax of two is the logistic function of their difference.
- No momentum encoder, no queue, no masked language modelling, no re-ranking of the most similar pairs alone.
- "prefix" (after ViLT: Kim et al. 2021): image tokens stand before the words in the text tower's blocks, but never see
  a word, and come from the image tower; so they are computed once for each image.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from menagerie.models.networks.pairs import (
    TokenBatch,
    all_pairs,
    draw_wrong_images,
    draw_wrong_texts,
    info_nce,
    negative_pairs,
    pick_rows,
    reader_of,
    score_columns,
)
from menagerie.models.objectives import Targets, contrastive_loss
from menagerie.models.scorer import Scorer, Sharing
from menagerie.models.scorers.captioners import FusionConfig
from menagerie.models.texts import map_tensors
from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.fused import FusedBlocks, KeysValues, add_positions, embed_words, final_norm, text_blocks


class ImageEmbedding(NamedTuple):
    """The embedding of n images."""

    seen: KeysValues
    """Keys and values of the images, to which words attend."""
    vectors: Float[Tensor, "n d"] | tuple[()]
    """Unit vectors by which hard negatives are drawn; none if draws are uniform."""


class TextEmbedding(NamedTuple):
    """The embedding of m texts."""

    tokens: TokenBatch
    words: Float[Tensor, "m t w"]
    """Embedded words, with their positions added."""
    vectors: Float[Tensor, "m d"] | tuple[()]
    """Unit vectors of the texts alone, by which hard negatives are drawn; none if draws are uniform."""


class FusionScorer(Scorer):
    """Reads an image and a text together, and scores them by the log-odds that they match. Scores are unbounded."""

    config_class = FusionConfig
    sharing = Sharing(images="gathered")
    pairs_only = True

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: FusionConfig) -> None:
        super().__init__(towers, texts, config.logit_scale)
        self.config, built = config, build_towers(towers, texts)
        built.require_tokens("fusion")
        self.take_towers(built)
        self.reader = reader_of(built)
        self.fused = FusedBlocks(text_blocks(built.text, "fusion"), built.image.width, config.fusion)
        self.head = nn.Linear(built.text.width, 1)
        if config.hard:
            if config.logit_scale == FusionConfig().logit_scale:
                self.take_temperature()
        else:
            self.log_scale.requires_grad_(False)
            built.drop_projections()

    @property
    def match_level(self) -> float | None:
        """Even odds; InfoNCE leaves the zero of log-odds open."""
        return 0.0 if self.config.objective == "matching" else None

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> ImageEmbedding:
        """Keys and values to which words attend, and with `hard` unit vectors."""
        tower = self.towers.image
        states, _, pooled = tower.tokens(pixels)
        seen = self.fused.read(states[:, :1] if self.config.tokens == "pooled" else states[:, 1:])
        return ImageEmbedding(seen, F.normalize(tower.project(pooled), dim=-1) if self.config.hard else ())

    def encode_texts(self, texts: TokenBatch) -> TextEmbedding:
        """Embedded words, and with `hard` unit vectors."""
        tower = self.towers.text
        words = add_positions(tower, embed_words(tower, texts.ids))
        if not self.config.hard:
            return TextEmbedding(texts, words, ())
        whole = F.pad(texts.ids, (0, self.texts.context - texts.ids.shape[1]))
        return TextEmbedding(texts, words, F.normalize(tower.pool(whole), dim=-1))

    def score(self, images: KeysValues, texts: TextEmbedding) -> Float[Tensor, "n c"]:
        """The logit of the c texts of each image."""
        states, ends = self.fused.after(texts.words, images), texts.tokens.length - 1
        last = states.take_along_dim(ends[..., None, None], dim=2)[:, :, 0]
        return self.head(final_norm(self.towers.text, last))[..., 0]

    def similarity(self, images: ImageEmbedding, texts: TextEmbedding) -> Float[Tensor, "n m"]:
        return all_pairs(self.score, images.seen, texts, len(images.seen.keys), len(texts.words))

    def pair_similarity(self, images: ImageEmbedding, texts: TextEmbedding) -> Float[Tensor, " n"]:
        return self.score(images.seen, map_tensors(texts, lambda tensor: tensor[:, None]))[:, 0]

    def loss(self, images: ImageEmbedding, texts: TextEmbedding, targets: Targets) -> Float[Tensor, ""]:
        """The loss over scores; with `hard`, plus InfoNCE of the vectors by which wrong pairs are drawn."""
        if not self.config.hard:
            return self.pair_loss(images.seen, texts, targets, None)
        cosines, scale = images.vectors @ texts.vectors.T, self.logit_scale()
        loss = self.pair_loss(images.seen, texts, targets, (scale * cosines).detach())
        return loss + contrastive_loss(cosines, scale, targets)

    def pair_loss(
        self, images: KeysValues, texts: TextEmbedding, targets: Targets, likeness: Float[Tensor, "n m"] | None
    ) -> Float[Tensor, ""]:
        """The loss over scores of own pairs and of wrong pairs, drawn by `likeness` or uniformly. If as many are wanted
        as there are, all pairs are scored."""
        n, m = targets.same.shape
        count = self.config.negatives or max(n, m)
        if count >= m - 1:
            return self.whole_loss(all_pairs(self.score, images, texts, n, m), targets)
        by_image, by_text = draw_wrong_texts(targets, count, likeness), draw_wrong_images(targets, count, likeness)
        own = torch.arange(n, device=by_image.number.device)[:, None]
        scores = score_columns(self.score, images, texts, torch.cat([own, by_image.number], dim=1))
        of_texts = pick_rows(images, by_text.number.flatten())
        again = own.expand_as(by_text.number).reshape(-1, 1)
        others = score_columns(self.score, of_texts, texts, again).reshape(by_text.number.shape)
        if self.config.objective == "infonce":
            own_text = info_nce(scores[:, 0], scores[:, 1:], by_image.usable)
            return (own_text + info_nce(scores[:, 0], others, by_text.usable)) / 2
        usable = torch.cat([by_image.usable, by_text.usable], dim=1)
        return matching_loss(scores[:, 0], torch.cat([scores[:, 1:], others], dim=1), usable)

    def whole_loss(self, scores: Float[Tensor, "n m"], targets: Targets) -> Float[Tensor, ""]:
        """The loss over the scores of all images with all texts. The positives are each image with its own
        text. Other pairs that happen to be true are left out."""
        n, possible = len(scores), negative_pairs(targets)
        own = scores.diagonal()
        if self.config.objective == "matching":
            return matching_loss(own, scores, possible)
        return (info_nce(own, scores, possible) + info_nce(own, scores[:, :n].T, possible[:, :n].T)) / 2


def matching_loss(
    own: Float[Tensor, " n"], others: Float[Tensor, "n k"], usable: Bool[Tensor, "n k"]
) -> Float[Tensor, ""]:
    """The mean cross-entropy of match or no match over own pairs and the usable others."""
    total = F.softplus(-own).sum() + F.softplus(others).masked_fill(~usable, 0).sum()
    return total / (own.numel() + usable.sum())

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
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from menagerie.models.networks.clip import CLIPScorer
from menagerie.models.networks.pairs import draw_wrong_images, draw_wrong_texts, info_nce
from menagerie.models.objectives import Targets, contrastive_losses
from menagerie.models.scorer import Sharing
from menagerie.models.scorers.clip import FILIPConfig
from menagerie.models.texts import by_images
from menagerie.models.towers.features import Layer


class Words(NamedTuple):
    """The unit vectors of m texts' tokens."""

    vectors: Float[Tensor, "m t d"]
    present: Bool[Tensor, "m t"]


class Sides(NamedTuple):
    """The two similarities of pairs: s_I, by patches, and s_T, by words."""

    by_patches: Float[Tensor, "*n m"]
    by_words: Float[Tensor, "*n m"]


class FILIPScorer(CLIPScorer):
    """The scorer FILIP: a unit vector for each patch and each word, each compared with its best match on the other
    side."""

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
        """How processes share a step. With `negatives` the loss gets the embeddings of all images, because it draws
        from all of them."""
        return Sharing(images="gathered" if self.config.negatives else "block")

    @property
    def pooled(self) -> bool:
        """Whether each image and each text has a single vector."""
        return self.config.tokens == "pooled"

    def similarity(self, images: Float[Tensor, "n p d"], texts: Words) -> Float[Tensor, "n m"]:
        """The score of every image with every text."""
        return self.score(self.sides(images, texts))

    def pair_similarity(self, images: Float[Tensor, "n p d"], texts: Words) -> Float[Tensor, " n"]:
        """The score of image i with text i."""
        return self.score(best_matches(images @ texts.vectors.transpose(1, 2), texts.present))

    def sides(self, images: Float[Tensor, "n p d"], texts: Words) -> Sides:
        """Both similarities of every image with every text, some images at a time if all cosines would take too much
        memory."""

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
    """InfoNCE of each image's own text against `count` wrong texts, and of that text's image against `count` wrong
    images."""
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

"""C2LIP (Pham et al. 2026): SigLIP that is also trained to find each phrase of a caption in the image.

Scores are those of SigLIP's vectors. With unit vectors v_i of images, p_k of the K phrases of a batch's captions and
x_iq of patches, the loss is SigLIP's plus phrase_weight L(v_i p_k) + patch_weight L(cos(x_ik, p_k)), where

    L(s) = -1/K sum_ik log sigmoid(z_ik (scale s_ik + bias)),    z_ik = 1 for the image that k is from, else -1
    x_ik = sum_q softmax_q(p_k x_iq) x_iq

Scale and bias are those of SigLIP's loss. Pooling has no parameters. The published code calls the terms NPC and XAC.

Where we differ from the published code (SamsungLabs/concept_centric_clip):

- A phrase is no negative of an image whose caption has it too, or is known to claim it: such pairs are left out. In
  the published code a phrase is a negative of every image but its own.
- Phrases are the nodes of scene graphs, backgrounds included. The authors' are written by a language model, without
  places.
- Patches are projected as CLS is, so C2LIP needs CLIP's towers. The authors' are the values of SigLIP's attentional
  pooling.
- Temperature and bias start as those of our `siglip`.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from menagerie.models.networks.clip import CaptionReader
from menagerie.models.networks.graph_batch import number_distinct
from menagerie.models.networks.own_negatives import ImageEmbedding, PatchScorer
from menagerie.models.networks.siglip import SigLIPScorer
from menagerie.models.objectives import Targets, sigmoid_loss
from menagerie.models.scorer import Sharing
from menagerie.models.scorers.further_texts import C2LIPConfig
from menagerie.models.texts import Texts
from menagerie.models.towers.config import TextSpace, TowerConfig


class PhrasedTexts(NamedTuple):
    """The token ids of m captions and of their k phrases, of which u are distinct."""

    captions: Int64[Tensor, "m context"]
    phrases: Int64[Tensor, "u context"]
    number: Int64[Tensor, " k"]
    """Row of `phrases` that holds each phrase."""


class TextEmbedding(NamedTuple):
    """Unit vectors of m captions and of their k phrases, of which u are distinct."""

    vectors: Float[Tensor, "m d"]
    phrases: Float[Tensor, "u d"]
    number: Int64[Tensor, " k"]


@dataclass(frozen=True)
class PhrasedReader(CaptionReader):
    """Reads captions as token ids; in training also phrases, each distinct one once."""

    phrases: ClassVar[bool] = True

    def __call__(
        self, texts: Texts, generator: torch.Generator | None = None
    ) -> Int64[Tensor, "m context"] | PhrasedTexts:
        """Return the token ids of every caption; in training also those of the captions' phrases."""
        if generator is None:
            return super().__call__(texts)
        first = len(texts.captions) - (texts.targets.phrases if texts.targets else 0)
        phrases = texts.captions[first:]
        numbers = number_distinct(phrases)
        number = torch.tensor([numbers[phrase] for phrase in phrases], dtype=torch.int64)
        captions, distinct = (self.tokenizer(list(some), self.context) for some in (texts.captions[:first], numbers))
        return PhrasedTexts(captions, distinct, number)


class C2LIPScorer(PatchScorer, SigLIPScorer):
    """SigLIP trained with C2LIP's losses."""

    config_class = C2LIPConfig
    sharing = Sharing("tower")

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: C2LIPConfig) -> None:
        super().__init__(towers, texts, config)
        self.reader = PhrasedReader(self.reader.tokenizer, self.reader.context)

    def encode_texts(self, texts: Int64[Tensor, "m context"] | PhrasedTexts) -> Float[Tensor, "m d"] | TextEmbedding:
        """Unit vectors of the captions, in training also of their phrases."""
        if isinstance(texts, Tensor):
            return super().encode_texts(texts)
        both = super().encode_texts(torch.cat([texts.captions, texts.phrases]))
        return TextEmbedding(*both.split([len(texts.captions), len(texts.phrases)]), texts.number)

    def loss(self, images: ImageEmbedding, texts: TextEmbedding, targets: Targets) -> Float[Tensor, ""]:
        """SigLIP's loss of captions, plus the losses of phrases with images and with the patches that fit them."""
        count = len(texts.vectors)
        captions, phrases = (part_of(targets, columns) for columns in (slice(0, count), slice(count, None)))
        loss = super().loss(images.vectors, texts.vectors, captions)
        if not targets.phrases:
            return loss
        fit = (texts.phrases @ images.patches.transpose(1, 2)).softmax(-1)
        pooled = F.normalize(fit @ images.patches, dim=-1)  # from each image, by each phrase
        scores = images.vectors @ texts.phrases.T, (pooled * texts.phrases).sum(-1)
        for weight, cosines in zip((self.config.phrase_weight, self.config.patch_weight), scores, strict=True):
            logits = self.logit_scale() * cosines[:, texts.number] + self.bias
            loss = loss + weight * sigmoid_loss(logits, phrases.same, phrases.masked, targets.phrases)
        return loss


def part_of(targets: Targets, columns: slice) -> Targets:
    """Return the targets of the texts in `columns`."""
    masked = None if targets.masked is None else targets.masked[:, columns]
    return targets._replace(same=targets.same[:, columns], masked=masked)

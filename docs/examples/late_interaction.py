"""Late interaction, a scorer of your own: every word looks for the patch that fits it best.

The score is the mean over a caption's tokens of the greatest cosine with any patch (the text side of FILIP, Yao et al.
2021; ColBERT's idea for documents). Run it with `--models docs/examples/late_interaction.py:LateInteraction`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from menagerie.models.networks.clip import CaptionReader
from menagerie.models.scorer import Scorer
from menagerie.models.towers.build import build_towers


@dataclass(frozen=True)
class LateConfig:
    """Options of late interaction."""

    with_class_token: bool = False
    """Whether a word may also choose the image's class token."""


class Words(NamedTuple):
    """Unit vectors of m captions' tokens, and which of them are no padding."""

    vectors: Tensor  # (m, context, d)
    real: Tensor  # (m, context)


class LateInteraction(Scorer):
    """CLIP's towers, compared token by patch."""

    config_class = LateConfig

    def __init__(self, towers, texts, config):
        super().__init__(towers, texts)
        self.config = config
        built = build_towers(towers, texts)
        built.require_tokens("late interaction")
        self.take_towers(built)
        self.reader = CaptionReader(built.tokenizer, built.context)

    def encode_images(self, pixels):  # -> (n, patches, d)
        tower = self.towers.image
        tokens = tower.tokens(pixels).states[:, 0 if self.config.with_class_token else 1 :]
        return F.normalize(tower.project(tokens), dim=-1)

    def encode_texts(self, ids):
        tokens = self.towers.text.tokens(ids)
        return Words(F.normalize(self.towers.text.project(tokens.states), dim=-1), tokens.present)

    def similarity(self, images, words):  # -> (n, m)
        best = torch.einsum("npd,mtd->nmtp", images, words.vectors).amax(-1)
        return (best * words.real).sum(-1) / words.real.sum(-1)

    def pair_similarity(self, images, words):  # -> (n,)
        best = torch.einsum("npd,ntd->ntp", images, words.vectors).amax(-1)
        return (best * words.real).sum(-1) / words.real.sum(-1)

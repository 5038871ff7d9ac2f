"""CS-CLIP (Kargi et al. 2026): CLIP that also tells parts of captions from false versions of them.

Scores and towers are CLIP's. For an image i, t_i0 is its caption, and t_i1 to t_iK are parts of the caption: some of
its objects, in any order (`Captioned.several`). NegCLIP(k) is InfoNCE of images and texts t_ik, with false versions of
these texts as further columns: for captions (k = 0) those of all images, for parts each image's own alone, as in the
published `multi_caption` loss. The loss is NegCLIP(0) + part_weight mean_k NegCLIP(k). Each part has one false
version, in which a word is replaced. False captions are swaps unless `--text-negatives` says otherwise.

A text that means the same as another image's caption, or as a part of it, is a positive of that image too. One that is
only true of that image is left out. In NegCLIP(0), a caption that means the same as a part of another caption is left
out, too.

Where we differ from the published code (kargibora/CS-CLIP):

- No language model: parts and false versions come from the scene. A part has one object or several, with or without
  their relation. A lone animal's part is its caption.
- The published code leaves images without a false version of a text out of the whole loss of that text; here they lack
  that column alone.
- We leave out the terms of margin, rank, text and paraphrase, which have weight 0 in the published code.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from menagerie.models.networks.clip import CaptionReader, CLIPScorer
from menagerie.models.objectives import Targets, contrastive_loss
from menagerie.models.scorer import Sharing
from menagerie.models.scorers.further_texts import CSCLIPConfig
from menagerie.models.towers.config import TextSpace, TowerConfig


@dataclass(frozen=True)
class PartsReader(CaptionReader):
    """Reads captions as token ids, and asks for training batches with parts of captions and false versions of these."""

    captions: int
    false_further: str = "replace"


class CSCLIPScorer(CLIPScorer):
    """CLIP trained with CS-CLIP's losses."""

    config_class = CSCLIPConfig
    sharing = Sharing(images="gathered")

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: CSCLIPConfig) -> None:
        super().__init__(towers, texts, config)
        self.reader = PartsReader(self.reader.tokenizer, self.reader.context, 1 + self.config.parts)

    def loss(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"], targets: Targets) -> Float[Tensor, ""]:
        """NegCLIP(0), plus the weighted mean of NegCLIP(k) over the parts."""
        scale, parts = self.logit_scale(), range(1, targets.matched // len(images))
        whole, *rest = (negclip_loss(images, texts, targets, k, scale) for k in (0, *parts))
        return whole + self.config.part_weight * torch.stack(rest).mean() if rest else whole


def negclip_loss(
    images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"], targets: Targets, k: int, scale: Float[Tensor, ""]
) -> Float[Tensor, ""]:
    """NegCLIP(k): InfoNCE of images and their texts t_ik, with the false versions of these texts as negatives: those of
    all images for k = 0, else each image's own."""
    n, m = targets.same.shape
    own, false = slice(k * n, (k + 1) * n), slice(targets.matched, m)
    masked = torch.zeros_like(targets.same) if targets.masked is None else targets.masked
    same, others = targets.same[:, own], masked[:, false]
    if targets.owner is not None:
        others = others | (targets.owner // n != k)
        if k:
            others = others | (targets.owner % n != torch.arange(n, device=others.device)[:, None])
    right = same & same.T if k == 0 else same  # two captions, each of which is the other or a part of it, are the same
    rest = torch.cat([masked[:, own] | (same & ~right), others], dim=1)
    columns = Targets(torch.cat([right, targets.same[:, false]], dim=1), rest, n)
    return contrastive_loss(images @ torch.cat([texts[own], texts[false]]).T, scale, columns)

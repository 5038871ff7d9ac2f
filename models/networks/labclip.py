"""LABCLIP: a frozen CLIP whose text vectors pass a linear map, trained with swapped captions as negatives.

The score is the cosine of x and A y for an image's vector x and a text's vector y. A starts as the identity, so that
scores start as the frozen model's; only A and a temperature are trained. The loss is NegCLIP's: each image among all
captions and their swaps, each caption among images.

Where we differ from the published code (kdariina/CLIP-not-BoW-unimodally):

- The frozen model is trained in a cell of its own, and the images that it sees count as LABCLIP's too.
- Images are augmented while A is trained (`Recipe.augment`); theirs are encoded once.
- A text that is true of another image in the batch isn't a negative of that image. Their 192 CLEVR captions repeat
  within a batch, and for two objects of one colour the swap equals the caption.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from menagerie.models.scorer import Scorer, Sharing, Tensors
from menagerie.models.scorers.labclip import LABCLIPConfig
from menagerie.models.towers.config import TextSpace, TowerConfig


class LABCLIPScorer(Scorer):
    """The scorer LABCLIP: the vectors of a frozen model, `base`, with a linear map applied to those of texts."""

    config_class = LABCLIPConfig
    sharing = Sharing()

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: LABCLIPConfig, *, base: Scorer) -> None:
        super().__init__(towers, texts, config.logit_scale)
        self.config, self.base, self.reader, self.pixel_scale = config, base, base.reader, base.pixel_scale
        self.texts = base.texts
        side = base.pixel_scale.framing.resolution
        with torch.no_grad():
            width = base.encode_images(torch.zeros(1, 3, side, side, device=base.device)).shape[1]
        self.map = nn.Parameter(torch.eye(width))

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """The frozen model's unit vectors."""
        return self.base.encode_images(pixels)

    def encode_texts(self, texts: Tensors) -> Float[Tensor, "m d"]:
        """Unit vectors of the mapped captions."""
        return F.normalize(self.base.encode_texts(texts) @ self.map.T, dim=-1)

    def similarity(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
        """The cosine of every image with every text."""
        return images @ texts.T

    def pair_similarity(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """The cosine of image i with text i."""
        return (images * texts).sum(-1)

    def backbones(self) -> dict[str, list[nn.Parameter]]:
        """The parameters of the frozen model."""
        return self.base.backbones()

"""SigLIP (Zhai et al. 2023): CLIP's or SigLIP's towers, trained by a sigmoid for every pair in place of two softmaxes.

SigLIP's towers are open_clip's (`--architecture ViT-B-16-SigLIP`): they have a tokenizer that pads to 64 tokens, an
image tower without CLS, and a text tower without causal mask that pools its last position, padding or not. Code
that reads their tokens one by one must mask the padding itself.

Where we differ from open_clip:

- Temperature and bias start at the paper's 10 and -10. open_clip's SigLIP configurations set only the bias; the
  temperature stays at 1 / 0.07 unless its training script is run with `--siglip`.
- open_clip loads weights without a bias (CLIP's) with a bias of 0, at which a pair is positive with probability 1/2
  before training, and keeps their temperature; we start at the bias and temperature of the options.
- The inverse temperature may fall below 1.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from menagerie.models.networks.clip import CLIPScorer
from menagerie.models.objectives import Targets, sigmoid_loss
from menagerie.models.scorer import Sharing
from menagerie.models.scorers.siglip import SigLIPConfig
from menagerie.models.towers.config import TextSpace, TowerConfig


class SigLIPScorer(CLIPScorer):
    """The scorer SigLIP: one vector per image and one per caption, compared by their cosine. Its loss judges each pair
    by itself."""

    config_class = SigLIPConfig
    sharing = Sharing()

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: SigLIPConfig) -> None:
        super().__init__(towers, texts, config)
        start, pretrained = 0.0, self.towers.bias
        if pretrained is not None:
            pretrained.requires_grad_(False)  # the scorer has a bias of its own
            if towers.pretrained and towers.load:
                start = pretrained.item()  # 0 for weights without a bias
        if not start:  # then the temperature was trained for another loss
            self.log_scale.data.fill_(math.log(config.logit_scale))
        self.bias = nn.Parameter(torch.tensor(start or config.logit_bias))

    def loss(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"], targets: Targets) -> Float[Tensor, ""]:
        """The sum over all pairs, divided by the number of images. Texts that belong to no image are negatives of every
        image, unless masked."""
        logits = self.logit_scale() * self.similarity(images, texts) + self.bias
        return sigmoid_loss(logits, targets.same, targets.masked, targets.images)

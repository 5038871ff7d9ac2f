"""CLIP with a linear bottleneck: both towers' vectors pass through few numbers before they are compared (SPARO's table
0.B.2)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from menagerie.models.networks.clip import ReadOutScorer
from menagerie.models.scorers.clip_linear import LinearConfig
from menagerie.models.towers.towers import Tokens


class LinearBottleneck(nn.Module):
    """CLS or the end of the text, in `narrow` numbers and from there in `wide`; nothing non-linear between them.

    The first map takes the place of the tower's projection (width, d), and starts as that where d is `narrow`: then
    pretrained towers keep theirs. Otherwise it is drawn as open_clip draws projections.
    """

    def __init__(self, projection: Float[Tensor, "width d"], narrow: int, wide: int) -> None:
        super().__init__()
        width = len(projection)
        fits = projection.shape[1] == narrow
        self.narrow = nn.Parameter(projection.detach().clone() if fits else width**-0.5 * torch.randn(width, narrow))
        self.wide = nn.Linear(narrow, wide)

    def forward(self, tokens: Tokens) -> Float[Tensor, "n wide"]:
        """Unit vectors."""
        return F.normalize(self.wide(tokens.pooled @ self.narrow), dim=-1)


class LinearScorer(ReadOutScorer):
    """CLS and end token, each through an affine map of a narrow projection."""

    config_class = LinearConfig

    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """A bottleneck for each tower."""
        towers = self.towers.image, self.towers.text
        return tuple(LinearBottleneck(tower.projection, self.config.narrow, self.config.wide) for tower in towers)

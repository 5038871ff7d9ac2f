"""Finite discrete tokens (FDT; Chen et al. 2023): what an input says as a sparse mean of learned codes, which images
and texts share.

Where this differs from what the authors published, and why:
- Padding is left out of the maximum over tokens. There its scores are multiplied by 0, which makes each maximum one
  against 0.
- The temperature is a field, and its default a tenth of theirs. That is 1000 throughout (it is meant to decay, by a
  factor of 1). With that an input starts with thousands of codes (3300 of 16384 on ViT-B/32, 470 with ours), and with
  nearly all of a small codebook; then all inputs have nearly the same vector.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.models.networks.clip import ReadOutScorer
from menagerie.models.scorers.read_outs import FDTConfig
from menagerie.models.towers.towers import Tokens


class CodeReadOut(nn.Module):
    """Tokens of one tower to a sparse mean of codes."""

    def __init__(self, width: int, dim: int, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature
        self.to_query = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, dim), nn.GELU(), nn.LayerNorm(dim), nn.Linear(dim, dim)
        )

    def weights(self, tokens: Tokens, codes: Float[Tensor, "k d"]) -> Float[Tensor, "n k"]:
        """The share of each code: of the best score that any token gives it, by sparsemax; most are 0."""
        queries = self.to_query(tokens.states)
        scores = queries @ codes.T * codes.shape[1] ** -0.5
        if tokens.present is not None:
            scores = scores.masked_fill(~tokens.present[..., None], -torch.inf)
        return sparsemax(scores.amax(1) / self.temperature)

    def forward(self, tokens: Tokens, codes: Float[Tensor, "k d"]) -> Float[Tensor, "n d"]:
        """Unit vectors."""
        return F.normalize(self.weights(tokens, codes) @ codes, dim=-1)


class FDTScorer(ReadOutScorer):
    """Patches, as the last block gives them, and words, out of the last LayerNorm, choose codes; CLS has no part."""

    config_class = FDTConfig

    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """The scores of codes, for each tower; the codes themselves are the scorer's."""
        self.towers.image.drop_norm()  # nobody reads what it gives
        self.codes = nn.Parameter(torch.randn(self.config.codes, self.config.dim))
        widths = self.towers.image.width, self.towers.text.width
        return tuple(CodeReadOut(width, self.config.dim, self.config.temperature) for width in widths)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Unit vectors."""
        tokens = self.towers.image.tokens(pixels, normed=False)
        return self.image_read_out(tokens._replace(states=tokens.states[:, 1:]), self.codes)

    def encode_texts(self, texts: Int64[Tensor, "m context"]) -> Float[Tensor, "m d"]:
        """Unit vectors of the captions."""
        return self.text_read_out(self.towers.text.tokens(texts), self.codes)


def sparsemax(scores: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """The nearest point of the simplex (Martins and Astudillo 2016): what is above a threshold, which is such that
    each row sums to 1."""
    ordered = scores.sort(-1, descending=True).values
    excess = ordered.cumsum(-1) - 1
    ranks = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
    support = (ranks * ordered > excess).sum(-1, keepdim=True)
    return (scores - excess.gather(-1, support - 1) / support).clamp_min(0)

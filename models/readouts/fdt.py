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
from jaxtyping import Float
from torch import Tensor, nn

from menagerie.models.readouts.tokens import Tokens


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


def sparsemax(scores: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """The nearest point of the simplex (Martins and Astudillo 2016): what is above a threshold, which is such that
    each row sums to 1."""
    ordered = scores.sort(-1, descending=True).values
    excess = ordered.cumsum(-1) - 1
    ranks = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
    support = (ranks * ordered > excess).sum(-1, keepdim=True)
    return (scores - excess.gather(-1, support - 1) / support).clamp_min(0)

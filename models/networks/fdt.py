"""Finite discrete tokens (FDT; Chen et al. 2023): an image or a text as a sparse mean of learned codes, which both
share.

Where we differ from the published code, and why:
- Padding is left out of the maximum over tokens. The published code multiplies the scores of padding by 0, so that each
  maximum is at least 0.
- The temperature is an option, by default a tenth of the published 1000, which stays constant (it is meant to decay,
  but by a factor of 1). With 1000 an input starts with thousands of codes (3300 of 16384 on ViT-B/32; 470 with our
  default), and with nearly all codes of a small codebook; then all inputs have nearly the same vector.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.models.networks.clip import ReadOutScorer
from menagerie.models.scorers.read_outs import FDTConfig
from menagerie.models.towers.features import Layer
from menagerie.models.towers.towers import Tokens


class CodeReadOut(nn.Module):
    """Turns the tokens of one tower into a sparse mean of codes."""

    def __init__(self, width: int, dim: int, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature
        self.to_query = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, dim), nn.GELU(), nn.LayerNorm(dim), nn.Linear(dim, dim)
        )

    def weights(self, tokens: Tokens, codes: Float[Tensor, "k d"]) -> Float[Tensor, "n k"]:
        """The weight of each code: sparsemax of its best score with any token; most are 0."""
        queries = self.to_query(tokens.states)
        scores = queries @ codes.T * codes.shape[1] ** -0.5
        if tokens.present is not None:
            scores = scores.masked_fill(~tokens.present[..., None], -torch.inf)
        return sparsemax(scores.amax(1) / self.temperature)

    def forward(self, tokens: Tokens, codes: Float[Tensor, "k d"]) -> Float[Tensor, "n d"]:
        """Unit vectors of the means of codes."""
        return F.normalize(self.weights(tokens, codes) @ codes, dim=-1)


class FDTScorer(ReadOutScorer):
    """The scorer FDT. It uses the patches from the image tower's last block, without CLS, and words after the text
    tower's last LayerNorm."""

    config_class = FDTConfig

    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """Make the modules that weight codes, one for each tower, and the codes, which both share."""
        self.towers.image.drop_norm()  # its output isn't used
        self.codes = nn.Parameter(torch.randn(self.config.codes, self.config.dim))
        widths = self.towers.image.width, self.towers.text.width
        return tuple(CodeReadOut(width, self.config.dim, self.config.temperature) for width in widths)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Unit vectors of the images."""
        tokens = self.towers.image.tokens(pixels, normed=False)
        return self.image_read_out(tokens._replace(states=tokens.states[:, 1:]), self.codes)

    def encode_texts(self, texts: Int64[Tensor, "m context"]) -> Float[Tensor, "m d"]:
        """Unit vectors of the captions."""
        return self.text_read_out(self.towers.text.tokens(texts), self.codes)

    def image_parts(self, embedding: Float[Tensor, "n d"], tokens: Layer | None) -> dict[str, Layer]:
        """The weights of the codes (n, 1, k)."""
        return {"weights": Layer(self.weights(self.image_read_out, tokens._replace(states=tokens.states[:, 1:])))}

    def text_parts(self, embedding: Float[Tensor, "m d"], tokens: Layer | None) -> dict[str, Layer]:
        """The weights of the codes (m, 1, k)."""
        return {"weights": Layer(self.weights(self.text_read_out, tokens))}

    def weights(self, read_out: CodeReadOut, tokens: Layer) -> Float[Tensor, "n 1 k"]:
        """The weights that a read-out gives the codes. It doesn't use the pooled token, so any token stands for it."""
        return read_out.weights(Tokens(*tokens, pooled=tokens.states[:, 0]), self.codes)[:, None]


def sparsemax(scores: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """Project scores onto the simplex (Martins and Astudillo 2016): subtract a threshold and clip at 0, so that each
    row sums to 1."""
    ordered = scores.sort(-1, descending=True).values
    excess = ordered.cumsum(-1) - 1
    ranks = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
    support = (ranks * ordered > excess).sum(-1, keepdim=True)
    return (scores - excess.gather(-1, support - 1) / support).clamp_min(0)

"""FDT (Chen et al. 2023): images and texts as sparse means of the same learned codes (models/readouts/fdt.py)."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.models.readouts.fdt import CodeReadOut
from menagerie.models.readouts.tokens import image_tokens, text_tokens, widths
from menagerie.models.scorers.clip.read_out import ReadOutScorer
from menagerie.models.scorers.fdt.spec import FDTConfig


class FDTScorer(ReadOutScorer):
    """Patches, as the last block gives them, and words, out of the last LayerNorm, choose codes; CLS has no part."""

    config_class = FDTConfig

    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """The scores of codes, for each tower; the codes themselves are the scorer's."""
        self.model.visual.ln_post = nn.Identity()  # nobody reads what it gives
        self.codes = nn.Parameter(torch.randn(self.config.codes, self.config.dim))
        return tuple(CodeReadOut(width, self.config.dim, self.config.temperature) for width in widths(self.model))

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Unit vectors."""
        tokens = image_tokens(self.model, pixels, normed=False)
        return self.image_read_out(tokens._replace(states=tokens.states[:, 1:]), self.codes)

    def encode_texts(self, texts: Int64[Tensor, "m context"]) -> Float[Tensor, "m d"]:
        """Unit vectors of the captions."""
        return self.text_read_out(text_tokens(self.model, texts), self.codes)

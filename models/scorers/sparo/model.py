"""CLIP with SPARO (Vani et al. 2024): the similarity is the mean of the cosines of L slots (models/readouts/sparo.py).

Unlike the authors' fork of open_clip, the read-out works for texts of any tokenizer, encodings are always normalised,
and nothing reads the projections, which are gone.
"""

from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.models.readouts.heads import HeadReadOut, Separation, Sizes
from menagerie.models.readouts.sparo import SPARO
from menagerie.models.readouts.tokens import drop_last_block, drop_last_drawn_block, image_tokens, text_tokens, widths
from menagerie.models.scorers.clip.read_out import ReadOutScorer
from menagerie.models.scorers.sparo.spec import SPAROConfig


class SPAROScorer(ReadOutScorer):
    """L slots of V numbers for each image and each caption, in one unit vector."""

    capabilities = frozenset({"slots"})
    config_class = SPAROConfig

    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """A read-out for each tower, in place of its last block if the config says so."""
        if self.config.replace_block:
            drop_last_block(self.model.visual.transformer)  # its blocks start the same, however many there are
            pretrained = self.towers_config.pretrained
            (drop_last_block if pretrained else drop_last_drawn_block)(self.model.transformer)
        return tuple(read_out(width, self.config) for width in widths(self.model))

    def image_attention(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n l t"]:
        """The share of CLS and of each patch that every slot takes."""
        return self.image_read_out.attention(image_tokens(self.model, pixels))

    def text_attention(self, texts: Int64[Tensor, "m context"]) -> Float[Tensor, "m l context"]:
        """The share of each token that every slot takes; 0 behind a text's end."""
        return self.text_read_out.attention(text_tokens(self.model, texts))


def read_out(width: int, config: SPAROConfig) -> nn.Module:
    """SPARO's own read-out, or one of the others of table 6."""
    sizes = Sizes(config.slots, config.dim, config.key_dim)
    if config.attention == "sparo":
        return SPARO(width, sizes, config.group)
    apart = Separation(config.attention == "separate", config.slot_norm, config.slot_projection)
    return HeadReadOut(width, sizes, apart)

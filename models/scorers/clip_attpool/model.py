"""CLIP with attentional pooling: a learned query attends to all tokens, instead of CLS or the end of the text."""

from torch import nn

from menagerie.models.readouts.heads import ATTENTIONAL_POOLING, HeadReadOut, Sizes
from menagerie.models.readouts.tokens import widths
from menagerie.models.scorers.clip.read_out import ReadOutScorer
from menagerie.models.scorers.clip_attpool.spec import AttPoolConfig


class AttPoolScorer(ReadOutScorer):
    """LayerNorm, multi-head attention, LayerNorm and projection; on both towers, as SPARO's fork has it."""

    config_class = AttPoolConfig

    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """A pooling for each tower."""
        sizes = Sizes(self.config.heads, self.config.head_dim, self.config.head_dim)
        return tuple(HeadReadOut(width, sizes, ATTENTIONAL_POOLING) for width in widths(self.model))

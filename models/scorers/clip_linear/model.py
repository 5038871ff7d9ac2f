"""CLIP with a linear bottleneck: both towers' vectors pass through few numbers before they are compared."""

from torch import nn

from menagerie.models.readouts.linear import LinearBottleneck
from menagerie.models.scorers.clip.read_out import ReadOutScorer
from menagerie.models.scorers.clip_linear.spec import LinearConfig


class LinearScorer(ReadOutScorer):
    """CLS and end token, each through an affine map of a narrow projection."""

    config_class = LinearConfig

    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """A bottleneck for each tower."""
        projections = self.model.visual.proj, self.model.text_projection
        return tuple(LinearBottleneck(its, self.config.narrow, self.config.wide) for its in projections)

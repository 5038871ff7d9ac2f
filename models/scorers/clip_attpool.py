"""CLIP with attentional pooling of both towers' tokens; free of torch."""

from dataclasses import dataclass

from menagerie.models.scorers.clip import READ_OUT_PRETRAINED, READ_OUT_SCRATCH, CLIPConfig
from menagerie.models.spec import ScorerSpec


@dataclass(frozen=True)
class AttPoolConfig(CLIPConfig):
    """Sizes of the pooling; defaults are those of SPARO's table 6 (440M parameters with ViT-B/32)."""

    heads: int = 128
    """Heads of the one learned query."""
    head_dim: int = 64
    """Numbers of each, in query, keys and values; vectors have heads x head_dim."""


SPEC = ScorerSpec(
    name="clip-attpool",
    title="CLIP with attentional pooling",
    source="Vani et al. 2024 (SPARO), baseline AttPool; Yu et al. 2022",
    about="CLIP whose vectors are read out by one learned query that attends to patches or words",
    implementation="menagerie.models.networks.heads:AttPoolScorer",
    config=AttPoolConfig,
    small={"heads": 4, "head_dim": 16},  # vectors as wide as those of CLIP's small towers
    smoke={"heads": 2, "head_dim": 16},
    scratch=READ_OUT_SCRATCH,
    pretrained=READ_OUT_PRETRAINED,
    space={"heads": (2, 4, 8), "head_dim": (8, 16, 32)},
)

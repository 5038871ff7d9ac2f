"""CLIP with a linear bottleneck; free of torch."""

from dataclasses import dataclass

from menagerie.models.scorers.clip import READ_OUT_PRETRAINED, READ_OUT_SCRATCH, CLIPConfig
from menagerie.models.spec import ScorerSpec


@dataclass(frozen=True)
class LinearConfig(CLIPConfig):
    """Sizes of the bottleneck; defaults are the narrower of the paper's two (the other is 512 to 4096)."""

    narrow: int = 64
    """Numbers that the towers give."""
    wide: int = 512
    """Numbers that these are mapped to."""


SPEC = ScorerSpec(
    name="clip-linear",
    title="CLIP with a linear bottleneck",
    source="Vani et al. 2024 (SPARO), baseline of table 0.B.2",
    about="CLIP whose vectors pass through a few numbers, by a linear map",
    implementation="menagerie.models.networks.linear:LinearScorer",
    config=LinearConfig,
    small={"narrow": 8, "wide": 64},  # the paper's ratio, to vectors as wide as those of CLIP's small towers
    smoke={"narrow": 8, "wide": 32},
    scratch=READ_OUT_SCRATCH,
    pretrained=READ_OUT_PRETRAINED,
    space={"narrow": (4, 8, 16, 32), "wide": (64, 128, 256)},
)

"""CLIP with global average pooling of the image's tokens."""

from menagerie.models.scorers.clip import SPEC as CLIP
from menagerie.models.spec import ScorerSpec

SPEC = ScorerSpec(
    name="clip-gap",
    title="CLIP with average pooling",
    source="Vani et al. 2024 (SPARO), baseline GAP",
    about="CLIP whose image vector is the mean over all patches",
    implementation="menagerie.models.networks.clip:AverageScorer",
    config=CLIP.config,
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
)

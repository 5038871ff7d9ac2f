"""CLIP with global average pooling of the image's tokens; texts keep their end token (models/readouts/average.py)."""

from menagerie.models.readouts.average import average
from menagerie.models.scorers.clip.spec import SPEC as CLIP
from menagerie.models.spec import ScorerSpec

SPEC = ScorerSpec(
    name="clip-gap",
    title="CLIP with average pooling",
    source="Vani et al. 2024 (SPARO), baseline GAP",
    about="CLIP whose image vector is the mean over all patches",
    implementation=CLIP.implementation,
    config=CLIP.config,
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
    fixed={"image_read_out": average},
)

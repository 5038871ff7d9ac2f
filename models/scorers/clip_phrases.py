"""CLIP on the phrases of scene graphs, as studies know it; free of torch."""

from menagerie.models.scorers.clip import SPEC as CLIP
from menagerie.models.spec import ScorerSpec

SPEC = ScorerSpec(
    name="clip-phrases",
    title="CLIP, sum of phrases",
    source="a control for OC-CLIP: CLIP (Radford et al. 2021) on the graphs that OC-CLIP reads",
    about="one vector for an image, and the sum of those of the graph's phrases in place of the text's",
    implementation="menagerie.models.networks.phrases:PhraseSumScorer",
    config=CLIP.config,
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
    # No space: it has no option that CLIP doesn't have.
    reads=("graphs",),
    control=True,
)

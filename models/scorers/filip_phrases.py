"""Late interaction of phrases and patches, as studies know it; free of torch."""

from menagerie.models.scorers.clip import SPEC as CLIP
from menagerie.models.spec import ScorerSpec

SPEC = ScorerSpec(
    name="filip-phrases",
    title="Late interaction of phrases",
    source="a control for OC-CLIP: FILIP's similarity (Yao et al. 2022) on the graphs that OC-CLIP reads",
    about="a vector for each phrase of the graph and each patch; the score is the mean of each phrase's best cosine",
    implementation="menagerie.models.networks.phrases:PhraseInteractionScorer",
    config=CLIP.config,
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
    # No space: it has no option that CLIP doesn't have.
    reads=("graphs",),
    control=True,
)

"""The specs of CLIP on the phrases of scene graphs, controls for OC-CLIP; free of torch.

They have only CLIP's options, so tuning searches no options besides the recipe.
"""

from menagerie.models.scorers.clip import CLIP
from menagerie.models.spec import ScorerSpec

SUM = ScorerSpec(
    name="clip-phrases",
    title="CLIP, sum of phrases",
    source="a control for OC-CLIP: CLIP (Radford et al. 2021) on the graphs that OC-CLIP reads",
    about="one vector for an image, and the sum of those of the graph's phrases in place of the text's",
    implementation="menagerie.models.networks.phrases:PhraseSumScorer",
    config=CLIP.config,
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
    reads=("graphs",),
    control=True,
)

INTERACTION = ScorerSpec(
    name="filip-phrases",
    title="Late interaction of phrases",
    source="a control for OC-CLIP: FILIP's similarity (Yao et al. 2022) on the graphs that OC-CLIP reads",
    about="a vector for each phrase of the graph and each patch; the score is the mean of each phrase's best cosine",
    implementation="menagerie.models.networks.phrases:PhraseInteractionScorer",
    config=CLIP.config,
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
    reads=("graphs",),
    control=True,
)

SPECS = (SUM, INTERACTION)

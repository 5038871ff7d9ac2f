"""The spec of FILIP; free of torch."""

from dataclasses import dataclass
from typing import Annotated, Literal

from menagerie.envs.core.validation import COUNT
from menagerie.models.scorers.clip import CLIP, CLIPConfig
from menagerie.models.spec import ScorerSpec


@dataclass(frozen=True)
class FILIPConfig(CLIPConfig):
    """Options of FILIP."""

    symmetric: bool = True
    """As in the paper, images choose among texts by the mean over patches of the best word. If false, both directions
    use the mean over words of the best patch, so that a text needn't describe every patch."""
    tokens: Literal["patches", "pooled"] = "patches"
    """What is compared: patches with words, or CLS with the end token, which is CLIP."""
    negatives: Annotated[int, COUNT] = 0
    """Wrong texts for each image, and wrong images for each text, in the loss, drawn anew in each step; 0 takes all of
    the batch, as in the paper."""


FILIP = ScorerSpec(
    name="filip",
    title="FILIP",
    source="Yao et al. 2022, FILIP: Fine-grained interactive language-image pre-training",
    about="a vector for each word and each patch; the score is the mean of each one's best cosine with the other side",
    implementation="menagerie.models.networks.filip:FILIPScorer",
    config=FILIPConfig,
    # Our captions say nothing of most patches.
    small={"symmetric": False},
    # The paper trains with LAMB on 340M pairs; CLIP's recipes are used, because towers and temperature are CLIP's.
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
    space={"symmetric": (True, False)},
    control=True,
)

SPECS = (FILIP,)

"""The specs of CLIP with losses over each image's own false captions: CE-CLIP and FSC-CLIP; free of torch."""

from dataclasses import dataclass
from typing import Annotated

from menagerie.envs.core.validation import SHARE
from menagerie.envs.core.validation import Range as Limits
from menagerie.models.scorers.clip import CLIP, CLIPConfig
from menagerie.models.spec import Range, ScorerSpec

WEIGHT = Limits(0.0, 1000.0)
# Of the authors' scripts, both alike.
FINE_TUNED = {"learning_rate": 5e-6, "weight_decay": 0.1, "warmup": 50, "betas": (0.9, 0.98)}


@dataclass(frozen=True)
class CECLIPConfig(CLIPConfig):
    """Weights of CE-CLIP's losses; defaults are those of the authors' script (run_multiple_nodes.sh)."""

    rank_weight: Annotated[float, WEIGHT] = 0.2
    """Weight of the ranking loss: an image's caption should score above each of its false captions by a threshold that
    adapts."""
    text_weight: Annotated[float, WEIGHT] = 0.3
    """Weight of the loss that pushes the text vectors of captions away from those of false captions."""


CE_CLIP = ScorerSpec(
    name="ce-clip",
    title="CE-CLIP",
    source="Zhang et al. 2024, Contrasting intra-modal and ranking cross-modal hard negatives to enhance "
    "visio-linguistic compositional understanding",
    about="CLIP with false captions in its loss: among captions, ranked by image, and as texts unlike the captions",
    implementation="menagerie.models.networks.own_negatives:CECLIPScorer",
    config=CECLIPConfig,
    scratch=CLIP.scratch,  # the paper only fine-tunes
    pretrained=FINE_TUNED,
    space={"rank_weight": Range(0.05, 1.0, log=True), "text_weight": Range(0.05, 1.0, log=True)},
    negatives=("captions",),
    control=True,
)


@dataclass(frozen=True)
class FSCCLIPConfig(CLIPConfig):
    """Weights of FSC-CLIP's losses; defaults are the authors'."""

    global_weight: Annotated[float, WEIGHT] = 0.5
    """Weight of the loss over vectors of an image's caption and its own false captions."""
    patch_weight: Annotated[float, WEIGHT] = 0.2
    """Weight of the same loss over words and the patches that fit them."""
    gamma: Annotated[float, Limits(0.0, 10.0)] = 2.0
    """Focal exponent: the larger, the less the loss counts choices that are already sure; 0 gives cross-entropy."""
    smoothing: Annotated[float, SHARE] = 0.02
    """Label smoothing: share of the target that is divided equally among the caption and its false captions."""


FSC_CLIP = ScorerSpec(
    name="fsc-clip",
    title="FSC-CLIP",
    source="Oh et al. 2024, Preserving multi-modal capabilities of pre-trained VLMs for improving vision-linguistic "
    "compositionality",
    about="CLIP that also chooses each image's caption among its own false ones, by vectors and by words on patches",
    implementation="menagerie.models.networks.own_negatives:FSCCLIPScorer",
    config=FSCCLIPConfig,
    scratch=CLIP.scratch,  # the paper only fine-tunes
    pretrained=FINE_TUNED,
    space={"global_weight": Range(0.1, 2.0, log=True), "patch_weight": Range(0.05, 1.0, log=True)},
    negatives=("captions",),
    control=True,
)

SPECS = (CE_CLIP, FSC_CLIP)

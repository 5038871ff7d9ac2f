"""The specs of scorers on a frozen CLIP: LABCLIP and DCSM; free of torch."""

from dataclasses import dataclass
from typing import Literal

from menagerie.models.spec import ScorerSpec, Stage


@dataclass(frozen=True)
class LABCLIPConfig:
    """Options of LABCLIP."""

    logit_scale: float = 1.0
    """Initial value of the learned inverse temperature: 1, as published, not CLIP's."""


# Published: Adam at a constant rate, 1e-2 on synthetic images; ours decays to 0, as all models' do. No weight decay: it
# would pull the map towards 0 instead of the identity.
LABCLIP_RECIPE = {"learning_rate": 1e-2, "weight_decay": 0.0, "warmup": 0, "betas": (0.9, 0.999)}

LABCLIP = ScorerSpec(
    name="labclip",
    title="LABCLIP",
    source="Koishigarina et al. 2025, CLIP behaves like a bag-of-words model cross-modally but not uni-modally",
    about="a frozen CLIP whose text vectors pass a learned linear map",
    implementation="menagerie.models.networks.staged:LABCLIPScorer",
    config=LABCLIPConfig,
    scratch=LABCLIP_RECIPE,
    pretrained=LABCLIP_RECIPE,
    space={"logit_scale": (1.0, 1 / 0.07, 100.0)},
    negatives=("captions",),
    stage=Stage("clip"),
)


# Words that place, size or negate objects, as published.
PUBLISHED = ("above", "below", "left", "right", "small", "big", "not", "no", "without", "but", "absent")


@dataclass(frozen=True)
class DCSMConfig:
    """Sizes and choices of DCSM; defaults are the published ones."""

    tokens: int = 30
    """Columns of the map, one per token of the text; longer texts are cut. 0: as many as the texts need."""
    channels: int = 4
    """Channels of the two convolutions; as published, a 32nd of `hidden`."""
    hidden: int = 128
    """Width of the layer between the convolutions and the score."""
    functional_words: tuple[str, ...] = PUBLISHED
    """Words whose columns hold a vector of their own in place of cosines; without any, all columns hold cosines."""
    functional: Literal["fixed", "trained"] = "fixed"
    """Whether vectors of functional words stay as drawn at the start (fixed, as published) or are trained too."""


# Published: Adam at a constant 1e-3; ours decays to 0 as all models' do. The README says 1e-5, the checkpoints' names
# 1e-3.
DCSM_RECIPE = {"learning_rate": 1e-3, "weight_decay": 0.0, "warmup": 0, "betas": (0.9, 0.999)}

DCSM = ScorerSpec(
    name="dcsm",
    title="DCSM",
    source="Kang et al. 2025, Is CLIP ideal? No. Can we fix it? Yes! (dense cosine similarity maps)",
    about="a small network scores the cosines of all patches with all words of a frozen CLIP",
    implementation="menagerie.models.networks.staged:DCSMScorer",
    config=DCSMConfig,
    small={"tokens": 0, "hidden": 32, "functional_words": (*PUBLISHED, "under")},
    smoke={"tokens": 0, "hidden": 16, "channels": 2, "functional_words": (*PUBLISHED, "under")},
    scratch=DCSM_RECIPE,
    pretrained=DCSM_RECIPE,
    space={"channels": (2, 4), "hidden": (16, 32, 64), "functional": ("fixed", "trained")},
    negatives=("captions", "images"),
    stage=Stage("clip"),
)

SPECS = (LABCLIP, DCSM)

"""The spec of DCSM; free of torch."""

from dataclasses import dataclass
from typing import Literal

from menagerie.models.spec import ScorerSpec, Stage

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
    """Whether the vectors of functional words stay as drawn at the start (fixed, as published) or are trained with the
    rest."""


# Published: Adam at a constant 1e-3; ours decays to 0 as all models' do. The README says 1e-5, the checkpoints' names
# 1e-3.
RECIPE = {"learning_rate": 1e-3, "weight_decay": 0.0, "warmup": 0, "betas": (0.9, 0.999)}

DCSM = ScorerSpec(
    name="dcsm",
    title="DCSM",
    source="Kang et al. 2025, Is CLIP ideal? No. Can we fix it? Yes! (dense cosine similarity maps)",
    about="a small network scores the cosines of all patches with all words of a frozen CLIP",
    implementation="menagerie.models.networks.dcsm:DCSMScorer",
    config=DCSMConfig,
    small={"tokens": 0, "hidden": 32, "functional_words": (*PUBLISHED, "under")},
    smoke={"tokens": 0, "hidden": 16, "channels": 2, "functional_words": (*PUBLISHED, "under")},
    scratch=RECIPE,
    pretrained=RECIPE,
    space={"channels": (2, 4), "hidden": (16, 32, 64), "functional": ("fixed", "trained")},
    negatives=("captions", "images"),
    stage=Stage("clip"),
)

SPECS = (DCSM,)

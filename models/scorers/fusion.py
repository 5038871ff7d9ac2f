"""The spec of the scorer with early fusion; free of torch."""

from dataclasses import dataclass
from typing import Annotated, Literal

from menagerie.envs.core.validation import COUNT
from menagerie.models.scorers.read_outs import PRETRAINED
from menagerie.models.spec import Range, ScorerSpec


@dataclass(frozen=True)
class FusionConfig:
    """Options of the scorer with early fusion; defaults are ALBEF's, as far as it has them."""

    fusion: Literal["early", "prefix"] = "early"
    """How words see the image: by cross-attention in each text block (early), or as tokens before the words (prefix, as
    in ViLT)."""
    tokens: Literal["patches", "pooled"] = "patches"
    """Image tokens that words see: all patches, or CLS alone."""
    objective: Literal["matching", "infonce"] = "matching"
    """Loss over the scores of pairs: is each pair true or false (matching), or which one is true among its negatives
    (infonce)."""
    negatives: Annotated[int, COUNT] = 1
    """Wrong texts for each image, and wrong images for each text, in a step; 0 takes all of the batch, at the price of
    reading every image with every text."""
    hard: bool = True
    """Draw similar wrong pairs more often: similar by vectors that CLIP's loss trains beside the scores. If false, all
    wrong pairs are equally likely, and there are no vectors."""
    logit_scale: float = 1 / 0.07
    """Initial inverse temperature of the vectors by which hard pairs are drawn."""


# ALBEF's (configs/Pretrain.yaml and Pretrain.py of salesforce/ALBEF), with torch's own betas.
SCRATCH = {"learning_rate": 1e-4, "weight_decay": 0.02, "warmup": 2000, "betas": (0.9, 0.999)}
FUSION = ScorerSpec(
    name="fusion",
    title="Early fusion",
    source="Li et al. 2021, Align before fuse (ALBEF): image-text matching; BLIP (Li et al. 2022)",
    about="text blocks attend to the image's patches; the score is the log-odds that text and image match",
    implementation="menagerie.models.networks.fusion:FusionScorer",
    config=FusionConfig,
    smoke={"negatives": 3},
    scratch=SCRATCH,
    pretrained=PRETRAINED,  # no paper trains such a tower on CLIP's pretrained towers
    space={"negatives": Range(1, 15, log=True), "hard": (True, False)},
    control=True,
)

SPECS = (FUSION,)

"""The spec of CoCa; free of torch."""

from dataclasses import dataclass
from typing import Annotated, Literal

from menagerie.envs.core.validation import POSITIVE
from menagerie.envs.core.validation import Range as Limits
from menagerie.models.scorers.captioner import SCORED, LikelihoodConfig
from menagerie.models.scorers.read_outs import PRETRAINED
from menagerie.models.spec import ScorerSpec


@dataclass(frozen=True)
class CoCaConfig(LikelihoodConfig):
    """Options of CoCa; defaults are its paper's (base model)."""

    decoder_layers: Annotated[int, POSITIVE] = 12
    """Number of blocks after the text tower; they read the image."""
    contrast_weight: Annotated[float, Limits(0.0, 1000.0)] = 1.0
    """Weight of InfoNCE."""
    caption_weight: Annotated[float, Limits(0.0, 1000.0)] = 2.0
    """Weight of the captioning loss."""
    logit_scale: float = 1 / 0.07
    """Initial value of the learned inverse temperature of InfoNCE."""
    score: Literal["contrast", "likelihood"] = "contrast"
    """What scores a pair: the cosine of vectors (contrast), or the likelihood of the text (likelihood). Doesn't change
    training."""


COCA = ScorerSpec(
    name="coca",
    title="CoCa",
    source="Yu et al. 2022, CoCa: Contrastive captioners are image-text foundation models",
    about="CLIP whose text tower also feeds a decoder that predicts each word from the image's patches",
    implementation="menagerie.models.networks.coca:CoCaScorer",
    config=CoCaConfig,
    small={"decoder_layers": 2},
    smoke={"decoder_layers": 1, "score": "likelihood", "alpha": 1.0, "prior": "null"},
    # Section 4.1: Adafactor, here AdamW with the same rates; its warm-up is 2 % of 500 000 steps.
    scratch={"learning_rate": 8e-4, "weight_decay": 0.01, "warmup": 1000, "betas": (0.9, 0.999)},
    pretrained=PRETRAINED,
    space={"caption_weight": (0.5, 1.0, 2.0), "decoder_layers": (1, 2)},
    scored=(*SCORED, "score"),
    control=True,
)

SPECS = (COCA,)

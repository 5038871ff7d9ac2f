"""The spec of FLAIR; free of torch."""

from dataclasses import dataclass
from typing import Annotated

from menagerie.envs.core.validation import POSITIVE
from menagerie.models.spec import Range, ScorerSpec


@dataclass(frozen=True)
class FLAIRConfig:
    """Sizes and choices of FLAIR; defaults are its paper's."""

    captions: Annotated[int, POSITIVE] = 8
    """Captions of each image in a batch: its own, and parts of it drawn anew in each step."""
    heads: Annotated[int, POSITIVE] = 8
    """Heads of the attention that pools an image's patches for a text."""
    logit_scale: float = 1 / 0.07
    """Initial value of the learned inverse temperature."""
    logit_bias: float = -10.0
    """Initial value of the learned bias; -ln(B - 1) balances an image's one positive and its B - 1 negatives."""


FLAIR = ScorerSpec(
    name="flair",
    title="FLAIR",
    source="Xiao et al. 2025, FLAIR: VLM with fine-grained language-informed image representations",
    about="the text chooses which patches of the image it is compared with",
    implementation="menagerie.models.networks.flair:FLAIRScorer",
    config=FLAIRConfig,
    # Our captions have only a part or two that can be left out; the paper's have many sentences.
    small={"captions": 3, "heads": 4, "logit_bias": -4.0},
    smoke={"captions": 2, "heads": 2, "logit_bias": -3.0},
    scratch={"learning_rate": 5e-4, "weight_decay": 0.5, "warmup": 2000, "betas": (0.9, 0.98)},
    # The paper only trains from scratch. Pretrained towers use CLIP's fine-tuning rates, the new pooling OC-CLIP's for
    # its new module.
    pretrained={
        "learning_rate": 2e-4,
        "vision_learning_rate": 4e-6,
        "text_learning_rate": 4e-6,
        "weight_decay": 0.2,
        "warmup": 50,
        "betas": (0.9, 0.98),
    },
    space={"captions": (1, 2, 3), "heads": (1, 2, 4, 8), "logit_bias": Range(-10.0, -2.0)},
)

SPECS = (FLAIR,)

"""The spec of SigLIP; free of torch."""

from dataclasses import dataclass

from menagerie.models.scorers.clip import CLIPConfig
from menagerie.models.spec import Range, ScorerSpec


@dataclass(frozen=True)
class SigLIPConfig(CLIPConfig):
    """Options of SigLIP. Pretrained weights with a bias start at it, and at their temperature if you set no other."""

    logit_scale: float = 10.0
    """Initial value of the learned inverse temperature (Zhai et al. 2023, section 3.3)."""
    logit_bias: float = -10.0
    """Initial value of the learned bias; -ln(B - 1) balances the one positive and the B - 1 negatives of each image in
    a batch."""


SIGLIP = ScorerSpec(
    name="siglip",
    title="SigLIP",
    source="Zhai et al. 2023, Sigmoid loss for language image pre-training",
    about="CLIP whose loss judges each pair of an image and a text by itself, true or false",
    implementation="menagerie.models.networks.siglip:SigLIPScorer",
    config=SigLIPConfig,
    small={"logit_bias": -4.0},  # about balanced for 64 images
    smoke={"logit_bias": -3.0},
    # Section 4; its 20 000 steps of warm-up would be longer than our runs, so CLIP's number is used. Its weight decay
    # of 1e-4 is subtracted at each step at the peak rate (big_vision/optax.py adds it after scaling by the rate);
    # torch's AdamW multiplies decay by the rate, so here it is 1e-4 / 1e-3.
    scratch={"learning_rate": 1e-3, "weight_decay": 0.1, "warmup": 1000, "betas": (0.9, 0.95)},
    # Pretrained weights do better without decay (section 4.3); the rates are those of CLIP's fine-tuning.
    pretrained={"learning_rate": 4e-6, "weight_decay": 0.0, "warmup": 50, "betas": (0.9, 0.95)},
    space={"logit_bias": Range(-10.0, -2.0), "logit_scale": Range(5.0, 30.0, log=True)},
)

SPECS = (SIGLIP,)

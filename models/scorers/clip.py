"""CLIP, as studies know it; free of torch. And the recipes of scorers that read its towers out in another way."""

from dataclasses import dataclass

from menagerie.models.spec import ScorerSpec


@dataclass(frozen=True)
class CLIPConfig:
    """What is specific to CLIP."""

    logit_scale: float = 1 / 0.07
    """Where the learned inverse temperature starts (Radford et al. 2021, section 2.5). Pretrained weights start at
    their own, unless this is another value than the default."""


SPEC = ScorerSpec(
    name="clip",
    title="CLIP",
    source="Radford et al. 2021, Learning transferable visual models from natural language supervision",
    about="one vector for an image and one for a text; the score is their cosine",
    implementation="menagerie.models.networks.clip:CLIPScorer",
    config=CLIPConfig,
    # OC-CLIP's paper trains both models so from scratch (section 4.3.1), and fine-tunes CLIP so (section 4.2).
    scratch={"learning_rate": 5e-4, "weight_decay": 0.5, "warmup": 1000},
    pretrained={"learning_rate": 4e-6, "weight_decay": 0.2, "warmup": 50, "betas": (0.9, 0.95)},
)

# SPARO's paper trains all of its models so, baselines among them (table 0.C.3); the rest is ours (docs/training.md):
# AdamW's epsilon is 1e-8, not 1e-6, gradients are clipped, and the inverse temperature may fall below 1.
READ_OUT_SCRATCH = {"learning_rate": 5e-4, "weight_decay": 0.5, "warmup": 3600, "betas": (0.9, 0.98)}
# No paper puts these read-outs on pretrained towers. Towers as CLIP is fine-tuned, the fresh read-out as OC-CLIP's
# fresh module.
READ_OUT_PRETRAINED = {
    "learning_rate": 2e-4,
    "vision_learning_rate": 4e-6,
    "text_learning_rate": 4e-6,
    "weight_decay": 0.2,
    "warmup": 50,
    "betas": (0.9, 0.95),
}

"""CLIP, as studies know it; free of torch."""

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
    implementation="menagerie.models.scorers.clip.model:CLIPScorer",
    config=CLIPConfig,
    # OC-CLIP's paper trains both models so from scratch (section 4.3.1), and fine-tunes CLIP so (section 4.2).
    scratch={"learning_rate": 5e-4, "weight_decay": 0.5, "warmup": 1000},
    pretrained={"learning_rate": 4e-6, "weight_decay": 0.2, "warmup": 50, "betas": (0.9, 0.95)},
)

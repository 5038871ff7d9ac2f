"""CLIP, as studies know it; free of torch."""

from dataclasses import dataclass

from models.recipe import Recipe


@dataclass(frozen=True)
class CLIPConfig:
    """What is specific to CLIP."""

    context: int = 20
    """Tokens of a caption when trained from scratch."""
    logit_scale: float = 1 / 0.07
    """Where the learned inverse temperature starts (Radford et al. 2021, section 2.5)."""


# ... and section 4.2 for the finetuned CLIP.
CLIP_PRETRAINED = Recipe(batch=256, learning_rate=4e-6, weight_decay=0.2, betas=(0.9, 0.95))

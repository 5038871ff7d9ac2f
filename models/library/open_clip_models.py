"""open_clip's models by name, as scorers: CLIP's cosine on any of its towers."""

import warnings

import open_clip
import torch

from menagerie.envs.core.errors import UserError
from menagerie.models.checkpoint import build_scorer
from menagerie.models.scorer import Scorer
from menagerie.models.towers.config import TextSpace, TowerConfig


def open_clip_scorer(architecture: str, weights: str) -> Scorer:
    """At the model's own resolution and context; without `weights` random ones, the same ones always."""
    config = open_clip.get_model_config(architecture)
    side = config["vision_cfg"].get("image_size", 224)
    if not isinstance(side, int):
        raise UserError(f"{architecture} reads images of {side} pixels; this takes models that read squares")
    if not weights:
        warnings.warn(
            f"{architecture} has random weights; to name some, write {architecture}/TAG or {architecture}/FILE",
            stacklevel=4,
        )
    texts = TextSpace((), config["text_cfg"].get("context_length", 77))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build_scorer("clip", TowerConfig(architecture, weights, side), texts)

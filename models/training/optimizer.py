"""AdamW with a learning rate and a warm-up for each part of a scorer."""

import math

import torch

from menagerie.models.recipe import Recipe
from menagerie.models.scorer import Scorer


def rate_factor(step: int, warmup: int, steps: int, stable: int | None = None) -> float:
    """Linear warm-up, then a cosine to zero; depends on the step alone, never on the clock.

    With `stable` steps the rate is constant until then and falls to zero as 1 - sqrt, which costs nothing against a
    cosine of the same length (Hägele et al. 2024; warmup-stable-decay: Hu et al. 2024).
    """
    if step < warmup:
        return (step + 1) / warmup
    if stable is not None:
        return 1 - math.sqrt(max(0, step - stable) / max(1, steps - stable))
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def build_optimizer(scorer: Scorer, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW over the scorer's parts; each group knows its peak rate ("peak") and "warmup"."""
    backbones = scorer.backbones()
    in_backbone = {id(parameter) for part in backbones.values() for parameter in part}
    parts = {**backbones, "own": [p for p in scorer.parameters() if id(p) not in in_backbone]}
    rates = {"vision": recipe.vision_learning_rate, "text": recipe.text_learning_rate, "own": None}
    warmups = {"vision": recipe.vision_warmup, "text": recipe.text_warmup, "own": None}
    groups = []
    for name, parameters in parts.items():
        peak = recipe.learning_rate if rates[name] is None else rates[name]
        warmup = recipe.warmup if warmups[name] is None else warmups[name]
        for matrices, decay in ((True, recipe.weight_decay), (False, 0.0)):
            chosen = [p for p in parameters if p.requires_grad and (p.ndim >= 2) == matrices]
            groups.append({"params": chosen, "weight_decay": decay, "peak": peak, "warmup": warmup})
    groups = [group for group in groups if group["params"]]
    # All parameters in a few calls: the same bytes as one by one, and less of Python.
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas, foreach=True)


def set_rates(optimizer: torch.optim.Optimizer, step: int, steps: int, stable: int | None = None) -> None:
    """Set every group's learning rate for `step`."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * rate_factor(step, group["warmup"], steps, stable)

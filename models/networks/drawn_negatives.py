"""Negatives drawn from a batch, and InfoNCE over the scores of the drawn pairs.

A text that means the same as an image's own, or is true of it, is never drawn (`Targets.same`, `masked`), nor is the
image of such a text. Draws come from torch's default generator, which every training step seeds.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from menagerie.models.objectives import Targets

# Added to the log-weight of an image's own false captions: they come before all other texts of the batch.
FIRST = 1e4


class DrawnNegatives(NamedTuple):
    """k negatives of each of n images or texts."""

    number: Int64[Tensor, "n k"]
    usable: Bool[Tensor, "n k"]
    """False where the batch has fewer negatives than wanted; the number there means nothing."""


def negative_pairs(targets: Targets) -> Bool[Tensor, "n m"]:
    """Return which texts are negatives of which images."""
    return ~targets.same if targets.masked is None else ~(targets.same | targets.masked)


def draw_wrong_texts(targets: Targets, count: int, likeness: Float[Tensor, "n m"] | None = None) -> DrawnNegatives:
    """Draw `count` wrong texts for each image: its own false captions first, then texts by weight exp(likeness)."""
    weights = torch.zeros(targets.same.shape, device=targets.same.device) if likeness is None else likeness
    if targets.owner is not None:
        images = torch.arange(len(weights), device=weights.device)
        mine = torch.nn.functional.pad(targets.owner[None] == images[:, None], (targets.matched, 0))
        weights = weights + FIRST * mine
    return draw_columns(weights, negative_pairs(targets), count)


def draw_wrong_images(targets: Targets, count: int, likeness: Float[Tensor, "n m"] | None = None) -> DrawnNegatives:
    """Draw `count` wrong images for each image's text, by weight exp(likeness)."""
    n = len(targets.same)
    pairs = negative_pairs(targets)[:, :n].T
    weights = torch.zeros_like(pairs, dtype=torch.float32) if likeness is None else likeness[:, :n].T
    return draw_columns(weights, pairs, count)


def draw_columns(weights: Float[Tensor, "n m"], possible: Bool[Tensor, "n m"], count: int) -> DrawnNegatives:
    """Draw `possible` columns of each row without replacement, each time with probabilities softmax(weights) over those
    left.

    The columns with the highest weights after adding Gumbel noise are such a draw (Kool et al. 2019, section 2.3).
    """
    noise = torch.rand_like(weights, dtype=torch.float64).clamp_min(1e-300)
    keys = (weights.detach() - (-noise.log()).log()).masked_fill(~possible, -torch.inf)
    number = keys.topk(min(count, weights.shape[1]), dim=1).indices
    return DrawnNegatives(number, possible.gather(1, number))


def info_nce(own: Float[Tensor, " n"], others: Float[Tensor, "n k"], usable: Bool[Tensor, "n k"]) -> Float[Tensor, ""]:
    """Return the mean over rows of the cross-entropy of the `own` logit in a softmax over it and the usable others."""
    logits = torch.cat([own[:, None], others.masked_fill(~usable, -torch.inf)], dim=1)
    return (logits.logsumexp(1) - own).mean()

"""The losses that scorers are trained with."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor


class Targets(NamedTuple):
    """Which of m texts are right and which are wrong of n images."""

    same: Bool[Tensor, "n m"]
    """Text j means what the text of image i means: it is right."""
    masked: Bool[Tensor, "n m"] | None
    """Text j is neither right nor wrong of image i; None where that is so of none."""
    matched: int
    """Texts that belong to images, the first ones; those behind them are negatives alone."""


def contrastive_loss(similarity: Float[Tensor, "n m"], scale: Float[Tensor, ""], targets: Targets) -> Float[Tensor, ""]:
    """Symmetric InfoNCE (CLIP; OC-CLIP, equation 5): images among all texts, texts of images among all images.

    Equation 5 has no temperature, but similarities within -1 and 1 can't tell a batch apart
    without one, so it takes CLIP's; it sums both directions over the batch, this is their mean.

    Texts that mean the same share the target equally. "A red cat in the desert" is true of an
    image of a red cat and a white dog there: masked, it is no negative of that image, because
    pushing it away teaches that a dog makes a red cat less red.
    """
    logits, same = scale * similarity, targets.same
    if targets.masked is not None:
        logits = logits.masked_fill(targets.masked, -torch.inf)
    by_image = cross_entropy(logits, shares(same))
    if targets.matched < similarity.shape[1]:
        logits, same = logits[:, : targets.matched], same[:, : targets.matched]
    return (by_image + cross_entropy(logits.T, shares(same.T))) / 2


def sigmoid_loss(
    logits: Float[Tensor, "n m"], right: Bool[Tensor, "n m"], left_out: Bool[Tensor, "n m"] | None, terms: int
) -> Float[Tensor, ""]:
    """The loss of SigLIP: each pair of an image and a text is a binary classification; their losses are summed and
    divided by `terms`.

    Pairs that are `left_out` are neither. The sum runs over all pairs, but SigLIP divides by images, not by pairs.
    """
    signs = 2 * right.to(logits.dtype) - 1
    losses = -torch.nn.functional.logsigmoid(signs * logits)
    if left_out is not None:
        losses = losses.masked_fill(left_out, 0)
    return losses.sum() / terms


def shares(same: Bool[Tensor, "n m"]) -> Float[Tensor, "n m"]:
    """The target of each row, spread equally over what is right."""
    return same / same.sum(1, keepdim=True)


def cross_entropy(logits: Float[Tensor, "n m"], targets: Float[Tensor, "n m"]) -> Float[Tensor, ""]:
    """Mean over rows; a masked place (logit -inf) has target 0 and adds nothing."""
    return -(targets * logits.log_softmax(1).masked_fill(targets == 0, 0)).sum(1).mean()


def local_relation_loss(similarities: Float[Tensor, "k alternatives"], scale: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """The true graph (column 0) against altered ones (OC-CLIP, equation 6), summed over the rows; 0 without rows.

    An alternative that doesn't exist is -inf, and no part of its row.
    """
    absent = similarities.isneginf()
    # Scaled without its infinities: they would make the gradient of the scale no number.
    logits = (scale * similarities.masked_fill(absent, 0)).masked_fill(absent, -torch.inf)
    return -logits.log_softmax(1)[:, 0].sum()

"""What scorers are trained to do."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from generators.captions.graph import SceneGraph
from generators.captions.relations import claims


class Truths(NamedTuple):
    """What the texts of a batch say of its images: each is true of its own image, and perhaps of others."""

    same: Bool[Tensor, "n n"]
    """Text j means the same as text i."""
    true: Bool[Tensor, "n n"]
    """Text j is true of image i: text i claims all that text j claims."""


def truths(graphs: Sequence[SceneGraph]) -> Truths:
    """Compare the claims of all texts of a batch."""
    claimed = [claims(graph) for graph in graphs]
    return Truths(
        same=torch.tensor([[one == other for other in claimed] for one in claimed]),
        true=torch.tensor([[one >= other for other in claimed] for one in claimed]),
    )


def contrastive_loss(
    similarity: Float[Tensor, "n n"], scale: Float[Tensor, ""], truths: Truths, leave_out_true: bool = True
) -> Float[Tensor, ""]:
    """Symmetric InfoNCE, image i with text i (CLIP; OC-CLIP, equation 5).

    Equation 5 has no temperature, but similarities within -1 and 1 can't tell a batch apart
    without one, so it takes CLIP's; it sums both directions over the batch, this is their mean.

    Texts that mean the same share the target equally. "A red cat in the desert" is true of an
    image of a red cat and a white dog there: unless told otherwise it is no negative of that
    image, because pushing it away teaches that a dog makes a red cat less red.
    """
    targets = truths.same / truths.same.sum(1, keepdim=True)
    logits = scale * similarity
    if leave_out_true:
        logits = logits.masked_fill(truths.true & ~truths.same, -torch.inf)
    return (cross_entropy(logits, targets) + cross_entropy(logits.T, targets)) / 2


def cross_entropy(logits: Float[Tensor, "n n"], targets: Float[Tensor, "n n"]) -> Float[Tensor, ""]:
    """Mean over rows; a left-out place (logit -inf) has target 0 and adds nothing."""
    return -(targets * logits.log_softmax(1).masked_fill(targets == 0, 0)).sum(1).mean()


def local_relation_loss(similarities: Float[Tensor, "k alternatives"], scale: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """The true graph (column 0) against altered ones (OC-CLIP, equation 6); 0 without rows."""
    if not len(similarities):
        return similarities.sum()
    truth = torch.zeros(len(similarities), dtype=torch.int64, device=similarities.device)
    return F.cross_entropy(scale * similarities, truth)

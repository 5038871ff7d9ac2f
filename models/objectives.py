"""What scorers are trained to do."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from generators.graph import SceneGraph


def same_meaning(graphs: Sequence[SceneGraph]) -> Bool[Tensor, "n n"]:
    """Which texts of a batch say the same; such texts are not negatives of each other."""
    numbers: dict[str, int] = {}
    ids = torch.tensor([numbers.setdefault(graph.meaning, len(numbers)) for graph in graphs])
    return ids[:, None] == ids


def contrastive_loss(
    similarity: Float[Tensor, "n n"], scale: Float[Tensor, ""], same: Bool[Tensor, "n n"]
) -> Float[Tensor, ""]:
    """Symmetric InfoNCE, image i with text i (CLIP; OC-CLIP, equation 5).

    Equation 5 has no temperature, but similarities within -1 and 1 can't tell a batch apart
    without one, so it takes CLIP's; it sums both directions over the batch, this is their mean.
    Texts that mean the same share the target equally.
    """
    targets = same / same.sum(1, keepdim=True)
    logits = scale * similarity
    return (F.cross_entropy(logits, targets) + F.cross_entropy(logits.T, targets)) / 2


def local_relation_loss(similarities: Float[Tensor, "k alternatives"], scale: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """The true graph (column 0) against altered ones (OC-CLIP, equation 6); 0 without rows."""
    if not len(similarities):
        return similarities.sum()
    truth = torch.zeros(len(similarities), dtype=torch.int64, device=similarities.device)
    return F.cross_entropy(scale * similarities, truth)

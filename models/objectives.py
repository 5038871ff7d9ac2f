"""The losses with which scorers are trained."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from menagerie.models.ranks import ranks_of_step


class Block(NamedTuple):
    """Which rows of a batch's targets a process has, if several share the batch."""

    first: int
    """Index of the process's first image in the batch."""
    images: int
    """Number of images in the batch."""
    right: Int64[Tensor, " m"]
    """For each text, the number of images in the batch of which it is a positive."""


class Targets(NamedTuple):
    """Which of m texts are positives and which are negatives of n images."""

    same: Bool[Tensor, "n m"]
    """Whether text j is a positive of image i: it means the same as the image's text, or is a phrase of it."""
    masked: Bool[Tensor, "n m"] | None
    """Whether text j is neither a positive nor a negative of image i; None if no text is."""
    matched: int
    """Number of texts that belong to images; they come first. The others are negatives, or phrases at the end."""
    owner: Int64[Tensor, " k"] | None = None
    """Index of the text to which each later text belongs. A false caption belongs to the text of which it is a false
    version: the caption of image i, which is text i, or its further caption i + jn. A phrase belongs to the caption
    that it is from. None if that isn't known."""
    phrases: int = 0
    """Number of texts at the end that are phrases of captions. Unlike false captions, they are true of their owner."""
    block: Block | None = None
    """Which images of the whole batch these n are, if other processes have the rest; texts are always all."""

    @property
    def images(self) -> int:
        """Number of images in the batch, those of other processes included."""
        return self.block.images if self.block else len(self.same)

    @property
    def rows(self) -> slice:
        """The indices of the n images in the batch."""
        first = self.block.first if self.block else 0
        return slice(first, first + len(self.same))

    @property
    def portion(self) -> float:
        """The n images as a fraction of the batch. A mean over them, times this, is their part of the batch's mean."""
        return len(self.same) / self.images

    def of(self, rows: slice) -> "Targets":
        """The targets of some of the batch's images."""
        masked = None if self.masked is None else self.masked[rows]
        block = Block(rows.start, len(self.same), self.same.sum(0))
        return self._replace(same=self.same[rows], masked=masked, block=block)


def contrastive_loss(similarity: Float[Tensor, "n m"], scale: Float[Tensor, ""], targets: Targets) -> Float[Tensor, ""]:
    """Symmetric InfoNCE (CLIP; OC-CLIP, equation 5): each image among all texts, each image's text among all images.

    Equation 5 has no temperature, but similarities between -1 and 1 can't tell the items of a batch apart without one,
    so CLIP's is used. The equation sums both directions over the batch; this is their mean.

    Texts that mean the same share the target equally. "A red cat in the desert" is true of an image of a red cat and a
    white dog there. `targets` may mask such a text: then it isn't a negative of that image, because pushing it away
    teaches that a dog makes a red cat less red.
    """
    by_image, by_text = contrastive_losses(similarity, scale, targets)
    return (by_image + by_text) / 2


def contrastive_losses(
    similarity: Float[Tensor, "n m"], scale: Float[Tensor, ""], targets: Targets
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return the halves of `contrastive_loss`: finding each image's text among all texts, and each such text's image.

    If several processes share the batch, these are this process's shares of both.
    """
    logits, same = scale * similarity, targets.same
    if targets.masked is not None:
        logits = logits.masked_fill(targets.masked, -torch.inf)
    by_image = cross_entropy(logits, target_shares(same))
    if targets.matched < similarity.shape[1]:
        logits, same = logits[:, : targets.matched], same[:, : targets.matched]
    if targets.block is None:
        return by_image, cross_entropy(logits.T, target_shares(same.T))
    ranks = ranks_of_step()
    by_text = ranks.column_entropies(logits, same / targets.block.right[: targets.matched]) / targets.matched
    return by_image * targets.portion, by_text


def sigmoid_loss(
    logits: Float[Tensor, "n m"], right: Bool[Tensor, "n m"], left_out: Bool[Tensor, "n m"] | None, terms: int
) -> Float[Tensor, ""]:
    """SigLIP's loss: a binary classification of each pair of an image and a text, summed and divided by `terms`.

    Pairs that are `left_out` don't count. For SigLIP `terms` is the number of images, not of pairs.
    """
    signs = 2 * right.to(logits.dtype) - 1
    losses = -torch.nn.functional.logsigmoid(signs * logits)
    if left_out is not None:
        losses = losses.masked_fill(left_out, 0)
    return losses.sum() / terms


def target_shares(same: Bool[Tensor, "n m"]) -> Float[Tensor, "n m"]:
    """Return target probabilities for each row, spread equally over its positives."""
    return same / same.sum(1, keepdim=True)


def cross_entropy(logits: Float[Tensor, "n m"], targets: Float[Tensor, "n m"]) -> Float[Tensor, ""]:
    """The mean cross-entropy over rows; a masked entry (logit -inf) has target 0 and adds nothing."""
    return -(targets * logits.log_softmax(1).masked_fill(targets == 0, 0)).sum(1).mean()


def local_relation_loss(similarities: Float[Tensor, "k alternatives"], scale: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """The cross-entropy of the true graph (column 0) among altered ones (OC-CLIP, equation 6), summed over rows; 0
    without rows.

    An alternative that doesn't exist is -inf, and is ignored.
    """
    absent = similarities.isneginf()
    # Scale only finite values: with infinities the gradient of the scale would be NaN.
    logits = (scale * similarities.masked_fill(absent, 0)).masked_fill(absent, -torch.inf)
    return -logits.log_softmax(1)[:, 0].sum()

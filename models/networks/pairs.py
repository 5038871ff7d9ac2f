"""Captions as tokens with lengths, and pairs of images and texts in blocks, for scorers that read both together.

Negatives drawn from a batch, and InfoNCE over the scores of the drawn pairs.

A text that means the same as an image's own, or is true of it, is never drawn (`Targets.same`, `masked`), nor is the
image of such a text. Draws come from torch's default generator, which every training step seeds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from menagerie.models.networks.clip import CaptionReader
from menagerie.models.objectives import Targets
from menagerie.models.texts import Tensors, Texts, map_tensors
from menagerie.models.towers.towers import Towers, ends_of

# Pairs of an image and a text that are read at once, unless a scorer says otherwise.
PAIRS = 512


class TokenBatch(NamedTuple):
    """The tokens of m texts. All ids after a text's length are padding."""

    ids: Int64[Tensor, "m t"]
    length: Int64[Tensor, " m"]
    """Number of tokens in each text, the end token included."""
    chance: Float[Tensor, "m 2"]
    """Two random numbers for each text in training, by which scorers decide what to hide; 1 outside training."""


@dataclass(frozen=True)
class TokenReader(CaptionReader):
    """Reads captions as tokens with lengths. Training batches are cut to their longest text, because reading a text
    together with an image costs as much for padding as for words."""

    end: int | None
    """Id of the token that ends a text; None means the largest id."""

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> TokenBatch:
        """The tokens of every caption."""
        ids = self.tokenizer(texts.captions, self.context)
        length = ends_of(ids, self.end) + 1
        if generator is None:
            return TokenBatch(ids, length, torch.ones(len(ids), 2))
        longest = int(length.max()) if len(length) else 0
        return TokenBatch(ids[:, :longest].contiguous(), length, torch.rand(len(ids), 2, generator=generator))


def reader_of(towers: Towers) -> TokenReader:
    """The reader for towers that give tokens."""
    return TokenReader(towers.tokenizer, towers.context, towers.text.end_token)


# Scores of n images with c texts each, from the images' embedding and texts' embedding of shape (n, c, ...).
GroupScore = Callable[[Tensors, Tensors], Float[Tensor, "n c"]]


def all_pairs(
    score: GroupScore, images: Tensors, texts: Tensors, n: int, m: int, most: int = PAIRS
) -> Float[Tensor, "n m"]:
    """Score n images with m texts, at most `most` pairs at once."""
    rows = []
    for start in range(0, n, most):
        some, size = slice_rows(images, start, start + most), min(most, n - start)
        step = max(1, most // size)
        parts = [score(some, repeat_texts(slice_rows(texts, k, k + step), size)) for k in range(0, m, step)]
        rows.append(torch.cat(parts, dim=1))
    return torch.cat(rows)


def score_columns(
    score: GroupScore, images: Tensors, texts: Tensors, columns: Int64[Tensor, "n c"]
) -> Float[Tensor, "n c"]:
    """Score each image with c texts of its own, whose numbers are in `columns`."""
    step = max(1, PAIRS // max(1, columns.shape[1]))
    parts = []
    for start, chosen in zip(range(0, len(columns), step), columns.split(step), strict=True):
        parts.append(score(slice_rows(images, start, start + step), pick_rows(texts, chosen)))
    return torch.cat(parts)


def pick_rows(embedding: Tensors, numbers: Int64[Tensor, "*b"]) -> Tensors:
    """Return the rows of an embedding that have these numbers."""
    return map_tensors(embedding, lambda tensor: tensor[numbers])


def slice_rows(embedding: Tensors, start: int, end: int) -> Tensors:
    """Return the rows of an embedding from `start` to before `end`."""
    return map_tensors(embedding, lambda tensor: tensor[start:end])


def repeat_texts(embedding: Tensors, n: int) -> Tensors:
    """Repeat an embedding of texts for each of n images, without copying."""
    return map_tensors(embedding, lambda tensor: tensor.expand(n, *tensor.shape))


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

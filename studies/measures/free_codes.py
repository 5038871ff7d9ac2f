"""Codes without encoders: free vectors for all images and captions of a world, fitted to what is true of what.

The best score of a form (one vector, tokens, slots, sums over objects) is looked for by fitting: Adam on the whole
matrix A of a world (`truth_matrix`), in double precision. What a fit orders can be ordered; one that fails proves
nothing. Vectors that order each row of A need at least the sign rank of 2 A - 1, minus 1, dimensions (Weller et al.
2025, arXiv 2508.21038).
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from menagerie.studies.measures.truth_matrix import LEFT, PRESENT, UNNAMED, TruthMatrix

SCALE, RATE = 100.0, 0.1  # CLIP's largest scale (Radford et al. 2021); Adam's first rate
Composed = Literal["sum", "product", "pairs", "apart"]


class Codes(nn.Module):
    """Codes of all captions and images of a world; `forward` scores each caption with each image, from -1 to 1."""


class Tokens(Codes):
    """Sets of k vectors. The score is the mean over a caption's vectors of the cosine with the nearest one of the image
    (late interaction, as FILIP's: Yao et al. 2022). With k = 1 it is CLIP's cosine."""

    def __init__(self, world: TruthMatrix, width: int, tokens: int) -> None:
        super().__init__()
        self.images = free_vectors(len(world.images), tokens, width)
        true = torch.tensor(world.truth, dtype=torch.double)  # a caption begins at the mean of its images
        self.texts = nn.Parameter(torch.einsum("ci,ikd->ckd", true, self.images.data))
        if (none := ~true.any(1)).any():  # a caption that is false of every image begins anywhere
            self.texts.data[none] = torch.randn(int(none.sum()), tokens, width, dtype=torch.double)

    def forward(self) -> Float[Tensor, "captions images"]:
        texts, images = (normalize(its, dim=-1) for its in (self.texts, self.images))
        cosines = texts.flatten(0, 1) @ images.flatten(0, 1).T
        if texts.shape[1] == 1:
            return cosines
        return cosines.view(*texts.shape[:2], *images.shape[:2]).amax(3).mean(1)


class Slots(Codes):
    """A free vector for each object of an image, and a caption as a graph. Each node has the cosine of its label's
    vector with the nearest slot; each end of an edge, and each place, that of its own vector with its node's slot. The
    score is their mean (after OC-CLIP, Assouel et al. 2025: labels have the same vector in all captions)."""

    def __init__(self, world: TruthMatrix, width: int) -> None:
        super().__init__()
        nodes = [[(a, t, role if role < LEFT else PRESENT) for a, t, role in its] for its in world.captions]
        parts = [[*n, *(m for m in its if m[2] >= LEFT)] for n, its in zip(nodes, world.captions, strict=True)]
        number = {part: k for k, part in enumerate(dict.fromkeys(part for its in parts for part in its))}
        self.node = torch.tensor([number[(*part[:2], PRESENT)] if part[2] >= LEFT else k for part, k in number.items()])
        self.share = torch.zeros(len(parts), len(number), dtype=torch.double)
        for row, its in zip(self.share, parts, strict=True):
            row[[number[part] for part in its]] = 1 / len(its)
        self.labels, self.slots = (
            free_vectors(len(number), width),
            free_vectors(len(world.images), len(world.images[0]), width),
        )

    def forward(self) -> Float[Tensor, "captions images"]:
        cosines = normalize(self.labels, dim=-1) @ normalize(self.slots, dim=-1).flatten(0, 1).T
        cosines = cosines.view(len(self.labels), *self.slots.shape[:2])
        return self.share @ cosines.gather(2, cosines[self.node].argmax(2, keepdim=True))[..., 0]


class Composition(Codes):
    """Codes that are composed of what images show and captions mention: sums over objects. An object's vector is free
    ("sum"), or the elementwise product ("product") or the sum ("apart", which can't bind unless images tell places) of
    vectors of its animal and its texture, times a vector of its place or of what is said of it. "pairs" adds to
    "product" the elementwise product of each two objects. The score is the cosine. Images and captions have vectors of
    their own."""

    def __init__(self, world: TruthMatrix, width: int, form: Composed) -> None:
        super().__init__()
        self.form, self.sides, self.vectors = form, [], nn.ParameterList()
        for its in (world.captions, world.images):
            most = max(map(len, its))
            padded = torch.tensor([[*text, *[(UNNAMED, UNNAMED, UNNAMED)] * (most - len(text))] for text in its])
            self.sides.append((padded + torch.tensor([1, 1, 0]), padded[..., 2:] != UNNAMED))
        sizes = [int(max(its[..., k].max() for its, _ in self.sides)) + 1 for k in range(3)]
        for _ in self.sides:
            table = (
                [free_vectors(sizes[0] * sizes[1], width)]
                if form == "sum"
                else [free_vectors(size, width) for size in sizes[:2]]
            )
            self.vectors.extend([*table, free_vectors(sizes[2], width)])
        self.textures = sizes[1]

    def forward(self) -> Float[Tensor, "captions images"]:
        half = len(self.vectors) // 2
        texts, images = (self.compose(k, list(self.vectors[k * half : (k + 1) * half])) for k in (0, 1))
        return texts @ images.T

    def compose(self, side: int, vectors: list[Tensor]) -> Float[Tensor, "items width"]:
        (mentions, given), (*tables, said) = self.sides[side], vectors
        animal, texture, role = mentions.clamp(min=0).unbind(-1)
        if self.form == "sum":
            found = tables[0][animal * self.textures + texture]
        else:
            both = tables[0][animal], tables[1][texture]
            found = both[0] + both[1] if self.form == "apart" else both[0] * both[1]
        found = found * said[role] * given
        total = found.sum(1)
        if self.form == "pairs":
            total = total + (total**2 - (found**2).sum(1)) / 2
        return normalize(total, dim=-1)


def free_vectors(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape, dtype=torch.double))


LogitsLoss = Callable[[Tensor], Tensor]
"""Maps logits (captions x images) to a loss, for the matrix that it was made for."""


def infonce_of(truth: Bool[Tensor, "captions images"]) -> LogitsLoss:
    """Return the mean cross-entropy of each true pair among the false ones, by caption and by image."""
    false, at = (~truth).double(), truth.nonzero(as_tuple=True)

    def loss(logits: Tensor) -> Tensor:
        powers = logits.exp()
        wrong, right = powers * false, powers[at]
        return sum(torch.log1p(wrong.sum(1 - k)[at[k]] / right).mean() for k in (0, 1))

    return loss


def sigmoid_of(truth: Bool[Tensor, "captions images"]) -> LogitsLoss:
    """Return the loss of SigLIP (Zhai et al. 2023), as a mean over all pairs."""
    sign = 1 - 2 * truth.double()
    return lambda logits: softplus(sign * logits).mean()


def margin_of(truth: Bool[Tensor, "captions images"]) -> LogitsLoss:
    """Return a smooth hinge of the lowest true pair above the highest false one, by caption and by image."""
    false, true = (~truth).double(), truth.double()

    def loss(logits: Tensor) -> Tensor:
        powers = logits.exp()
        wrong, right = powers * false, true / powers
        return sum(torch.log1p(wrong.sum(k) * right.sum(k)).mean() for k in (0, 1))

    return loss


LOSSES: dict[str, Callable[[Tensor], LogitsLoss]] = {"infonce": infonce_of, "sigmoid": sigmoid_of, "margin": margin_of}


def fit_codes(
    codes: Codes, truth: Bool[np.ndarray, "n m"], loss: str, steps: int, part: Any = None
) -> Float[np.ndarray, "n m"]:
    """Fit codes to the matrix, or to the `part` (`np.ix_`) of it that is given; returns the scores of all pairs. The
    scale is learnt, up to `SCALE`, and for the sigmoid loss a bias too, which begins as SigLIP's."""
    loss_of = LOSSES[loss](torch.tensor(truth if part is None else truth[part]))
    scale = nn.Parameter(torch.tensor(1 / 0.07, dtype=torch.double).log())
    bias = nn.Parameter(torch.tensor(-10.0 if loss == "sigmoid" else 0.0, dtype=torch.double))
    optimiser = torch.optim.Adam([*codes.parameters(), scale, *[bias] * (loss == "sigmoid")], RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        scores = codes() if part is None else codes()[part]
        optimiser.zero_grad()
        loss_of(scores * scale.exp().clamp(max=SCALE) + bias).backward()
        optimiser.step()
        schedule.step()
    return codes().detach().numpy()


def margins(scores: Float[np.ndarray, "n m"], truth: Bool[np.ndarray, "n m"]) -> Float[np.ndarray, " n"]:
    """Return for each row by how much its lowest true score is above its highest false one; inf without both."""
    return np.where(truth, scores, np.inf).min(1) - np.where(truth, -np.inf, scores).max(1)

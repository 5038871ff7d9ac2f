"""Probes that are trained by gradient descent, beside the linear ones: one with a hidden layer, of a single vector, and
one in which a learnt query for each animal pools the tokens, as in 2606.03976. Both say which texture each animal has,
on pairs of animals that they weren't trained on."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Num
from torch import Tensor, nn

from menagerie.studies.measures.probe_set import Measured, ProbeAxes
from menagerie.studies.measures.probes import FOLDS, LOSSES, bits, one_core, standardise

HIDDEN = 128
STEPS, BATCH, RATE, DECAY = 300, 128, 3e-2, 1.0  # of AdamW; the rate falls to 0 along a cosine


class ReaderBits(NamedTuple):
    """Bits that a reader finds; chance is 0 and 1 is all, as in `BindingProbes`."""

    bits: Measured
    bernoulli_bits: Measured


class HiddenReader(nn.Module):
    """Reads a single vector through a hidden layer."""

    def __init__(self, width: int, animals: int, textures: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, animals * textures))
        self.kinds = animals, textures

    def forward(self, tokens: Float[Tensor, "n 1 d"]) -> Float[Tensor, "n animals textures"]:
        """Return the logits of each animal's texture."""
        return self.layers(tokens[:, 0]).unflatten(1, self.kinds)


class AttentionReader(nn.Module):
    """A query for each animal pools the tokens; a linear map, the sum of one for all animals and one of its own, reads
    its texture from what is pooled."""

    def __init__(self, width: int, animals: int, textures: int) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(animals, width) / width)
        self.shared = nn.Parameter(torch.randn(width, textures) / width)
        self.own = nn.Parameter(torch.zeros(animals, width, textures))
        self.bias = nn.Parameter(torch.zeros(animals, textures))

    def forward(self, tokens: Float[Tensor, "n t d"]) -> Float[Tensor, "n animals textures"]:
        """Return the logits of each animal's texture."""
        weights = (tokens @ self.queries.T).softmax(1)
        pooled = weights.transpose(1, 2) @ tokens
        return (pooled[:, :, None] @ (self.shared + self.own))[:, :, 0] + self.bias


@one_core
def read_binding(
    tokens: Num[np.ndarray, "v p q t d"], axes: ProbeAxes, make: Callable[[int, int, int], nn.Module]
) -> ReaderBits:
    """Return the bits that a kind of reader finds in tokens, held out by pairs of animals."""
    axes.check(tokens)
    margins = reader_margins(torch.from_numpy(standardise(tokens)).float(), axes, make)
    return ReaderBits(bits(margins.sum(-1)), bits(margins, LOSSES))


def reader_margins(
    tokens: Float[Tensor, "v p q t d"], axes: ProbeAxes, make: Callable[[int, int, int], nn.Module]
) -> Float[np.ndarray, "v p q 2"]:
    """Return for both objects of each scene the logit of the object's texture minus that of the other object's, by
    readers trained on other pairs of animals."""
    shape, folds = tokens.shape[:3], torch.from_numpy(axes.folds(FOLDS))
    animals = torch.from_numpy(axes.animals)[:, None].expand(*shape, 2)
    textures = torch.from_numpy(axes.textures).expand(*shape, 2)
    found = torch.zeros(*shape, 2)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        for fold in range(FOLDS):
            train, test = folds != fold, folds == fold
            rows = (its[:, train].flatten(0, 2) for its in (tokens, animals, textures))
            reader = fit_reader(make(tokens.shape[-1], *axes.kinds), *rows)
            for view in range(len(tokens)):
                logits = read_textures(reader, tokens[view, test].flatten(0, 1), animals[view, test].flatten(0, 1))
                own = textures[view, test].flatten(0, 1)[..., None]
                margin = logits.gather(2, own) - logits.gather(2, own.flip(1))
                found[view, test] = margin[..., 0].detach().unflatten(0, (-1, shape[2]))
    return found.double().numpy()


def read_textures(
    reader: nn.Module, tokens: Float[Tensor, "n t d"], animals: Int[Tensor, "n 2"]
) -> Float[Tensor, "n 2 textures"]:
    """Return the logits of the textures of the two animals of each scene."""
    logits = reader(tokens)
    return logits.gather(1, animals[..., None].expand(-1, -1, logits.shape[2]))


def fit_reader(
    reader: nn.Module, tokens: Float[Tensor, "n t d"], animals: Int[Tensor, "n 2"], textures: Int[Tensor, "n 2"]
) -> nn.Module:
    """Train a reader to tell the texture of each animal of a scene; returns it."""
    optimizer = torch.optim.AdamW(reader.parameters(), RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        some = torch.randint(len(tokens), (BATCH,))
        logits = read_textures(reader, tokens[some], animals[some])
        optimizer.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), textures[some].flatten()).backward()
        optimizer.step()
        schedule.step()
    return reader.eval()

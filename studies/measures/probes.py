"""Probes: whether a linear reader can tell which animal has which texture, on pairs of animals not trained on."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from menagerie.studies.measures.axes import ProbeAxes
from menagerie.studies.measures.linear import held_out_logits, one_core, standardise
from menagerie.studies.measures.margins import bits, exclusive_or
from menagerie.studies.measures.measured import Measured, share_right

FOLDS = 3


class BindingProbes(NamedTuple):
    """What probes read of the textures of animals. An embedding may bind though a linear probe is at chance: one with
    separate coordinates for each place has 0 `bits`, but 1 `place_bits`. Where chance is one half, a tie counts one
    half."""

    right: Measured
    """Share of objects whose own texture scores highest of all."""
    right_of_two: Measured
    """Share of objects whose own texture scores above the other object's; one half without any binding."""
    scene: Measured
    """Share of scenes whose margin is positive."""
    bits: Measured
    """Bits of the scene's margin, of exactly 1 bit."""
    place_scene: Measured
    """Share of scenes in which probes of the left animal and of the left texture are both right or both wrong."""
    place_bits: Measured
    """Bits of the margin by place, of exactly 1 bit."""
    animal_left: Measured
    """Share of scenes for which the probe tells rightly which animal is left."""
    texture_left: Measured


@one_core
def probe_binding(embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes) -> BindingProbes:
    """Read the texture of each animal by a multinomial logistic probe of its own, trained on other pairs of animals.

    The scene's margin is the sum over both objects of the logit of the object's texture minus that of the other's.
    Probes are as in Koishigarina et al. (2502.03566), with swaps and mirrors kept together; bits are after 2606.03976.
    """
    axes.check(embeddings)
    x = standardise(embeddings)
    margin, right, above = texture_margins(texture_logits(x, axes), axes)
    animal, texture = left_margins(x, axes)
    both = exclusive_or(animal, texture)
    return BindingProbes(
        Measured(right.mean(), 1 / axes.kinds[1]),
        share_right(above),
        share_right(margin),
        bits(margin),
        share_right(both),
        bits(both),
        share_right(animal),
        share_right(texture),
    )


def texture_logits(x: Float[np.ndarray, "v p q d"], axes: ProbeAxes) -> Float[np.ndarray, "v p q 2 t"]:
    """Return the logits of all textures for the left and the right object, by the probe for the object's animal."""
    logits = np.zeros((*x.shape[:3], 2, axes.kinds[1]))
    folds = axes.folds(FOLDS)
    for animal in range(axes.kinds[0]):
        rows, side = axes.sides(animal)
        shown = axes.textures[:, side].T  # m q
        y = np.broadcast_to(shown, (len(x), *shown.shape))
        logits[:, rows, :, side] = logits_of_rows(x[:, rows], y, folds[rows][:, None], axes.kinds[1]).swapaxes(0, 1)
    return logits


def logits_of_rows(
    x: Float[np.ndarray, "*n d"], y: Int[np.ndarray, "*n"], fold: Int[np.ndarray, "..."], classes: int
) -> Float[np.ndarray, "*n classes"]:
    """Return held-out logits of embeddings with any leading axes."""
    folds = np.broadcast_to(fold, y.shape).reshape(-1)
    return held_out_logits(x.reshape(-1, x.shape[-1]), y.reshape(-1), folds, classes).reshape(*y.shape, classes)


def texture_margins(
    logits: Float[np.ndarray, "v p q 2 t"], axes: ProbeAxes
) -> tuple[Float[np.ndarray, "v p q"], Bool[np.ndarray, "v p q 2"], Float[np.ndarray, "v p q 2"]]:
    """Return the scene's margin; whether each own texture scores highest; how far it is above the other object's."""
    wanted, other = (
        np.broadcast_to(t[..., None], (*logits.shape[:4], 1)) for t in (axes.textures, axes.textures[:, ::-1])
    )
    above = (np.take_along_axis(logits, wanted, -1) - np.take_along_axis(logits, other, -1))[..., 0]
    return above.sum(-1), logits.argmax(-1) == axes.textures, above


@one_core
def probe_left(embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes) -> Float[np.ndarray, "v p q"]:
    """Return the margins by which probes, one for each animal, say that the left animal of a scene is left."""
    axes.check(embeddings)
    return left_margins(standardise(embeddings), axes)[0]


def left_margins(
    x: Float[np.ndarray, "v p q d"], axes: ProbeAxes
) -> tuple[Float[np.ndarray, "v p q"], Float[np.ndarray, "v p q"]]:
    """Return the margins by which probes say that the left animal is left, and that the left texture is left. A probe
    for each animal and each texture says whether it is left."""
    folds = np.broadcast_to(axes.folds(FOLDS)[:, None], x.shape[1:3])
    of_animals = side_margins(x, axes.animals, folds, axes.kinds[0])
    of_textures = side_margins(x.swapaxes(1, 2), axes.textures, folds.T, axes.kinds[1])
    return of_animals, of_textures.swapaxes(1, 2)


def side_margins(
    x: Float[np.ndarray, "v r s d"], pairs: Int[np.ndarray, "r 2"], folds: Int[np.ndarray, "r s"], kinds: int
) -> Float[np.ndarray, "v r s"]:
    """Return the margin by which probes say that the first of each ordered pair, along x's second axis, is left."""
    told = np.zeros((*x.shape[:3], 2))
    for kind in range(kinds):
        rows, side = np.nonzero(pairs == kind)
        y = np.broadcast_to((side == 0)[:, None].astype(int), (len(x), len(rows), x.shape[2]))
        told[:, rows, :, side] = logits_of_rows(x[:, rows], y, folds[rows], 2)[..., 1].swapaxes(0, 1)
    return told[..., 0] - told[..., 1]

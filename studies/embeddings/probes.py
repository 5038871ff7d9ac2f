"""Probes: whether a linear reader can tell which animal has which texture, on pairs of animals not trained on."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from menagerie.studies.embeddings.axes import ProbeAxes
from menagerie.studies.embeddings.bits import bits, exclusive_or
from menagerie.studies.embeddings.linear import held_out_logits, one_core, standardise
from menagerie.studies.embeddings.measured import Measured, share_right

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


class Control(NamedTuple):
    """Probes that are trained in all views but one and tested in that view, on all pairs."""

    true: Measured
    """Share of objects whose texture is told rightly."""
    random: Measured
    """The same for textures assigned at random: what the probe memorises."""
    selectivity: Measured
    """`true` minus `random`."""


@one_core
def control_task(embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes, seed: int = 0) -> Control:
    """Run the control task of Hewitt and Liang (1909.03368): each object of each (p, q) is assigned a random texture,
    the same in all views, which only a probe that recognises the scene can tell."""
    axes.check(embeddings, least=2)
    x, textures = standardise(embeddings), axes.kinds[1]
    drawn = np.random.default_rng(seed).integers(textures, size=(*embeddings.shape[1:3], 2))
    labels = np.broadcast_to(axes.textures, drawn.shape), drawn
    true, memorised = (right_in_other_views(x, axes, some) for some in labels)
    return Control(Measured(true, 1 / textures), Measured(memorised, 1 / textures), Measured(true - memorised, 0.0))


def right_in_other_views(x: Float[np.ndarray, "v p q d"], axes: ProbeAxes, labels: Int[np.ndarray, "p q 2"]) -> float:
    """Return the share of objects whose label the probe of their animal tells rightly in a view it hasn't seen."""
    right = []
    for animal in range(axes.kinds[0]):
        rows, side = axes.sides(animal)
        y = np.broadcast_to(labels[rows, :, side], (len(x), len(rows), x.shape[2]))
        logits = logits_of_rows(x[:, rows], y, np.arange(len(x))[:, None, None], axes.kinds[1])
        right.append((logits.argmax(-1) == y).reshape(-1))
    return float(np.concatenate(right).mean())


class SharedProbe(NamedTuple):
    """Results of one probe for the textures of all animals."""

    right: Measured
    """Share of objects whose own texture scores highest of all, on pairs of animals not trained on."""
    right_of_two: Measured
    right_compositions: Measured
    """The same on compositions (animal with texture) that it wasn't trained on."""
    right_of_two_compositions: Measured


@one_core
def probe_shared(embeddings: Num[np.ndarray, "v p q 2 d"], axes: ProbeAxes) -> SharedProbe:
    """Read textures from an embedding of each object, left and right, such as the mean of its patches, or a slot.

    Each object is held out once, one texture of each animal at a time, as in Uselis et al. (2605.31503).
    """
    axes.check(embeddings)
    x, textures = standardise(embeddings), axes.kinds[1]
    y = np.broadcast_to(axes.textures, embeddings.shape[:4])
    by_composition = (axes.animals[:, None] + axes.textures) % textures
    found = []
    for fold in (axes.folds(FOLDS)[:, None, None], by_composition):
        logits = logits_of_rows(x, y, fold, textures)
        _, right, above = texture_margins(logits, axes)
        found += [Measured(right.mean(), 1 / textures), share_right(above)]
    return SharedProbe(*found)

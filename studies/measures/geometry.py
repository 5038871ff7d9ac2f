"""Geometry: how much of the variance of embeddings comes from which object has which texture, and in what form; with
their alignment and edits a measure of finished runs.

D is a scene's embedding minus its swap's. Inner products are taken between two views, so that the noise of a single
view drops out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Num

from menagerie.studies.frame.measure import Row
from menagerie.studies.measures.alignment import alignment, measure_edits, units
from menagerie.studies.measures.axes import ProbeAxes
from menagerie.studies.measures.measured import Measured, label_rows, no_number
from menagerie.studies.measures.probe_set import (
    BOTH,
    EMBEDDING,
    IMAGE,
    MEAN,
    TEXT,
    ProbeMeasure,
    captions_of,
    has_vectors,
    image_vectors,
    probe_axes,
    text_vectors,
    unknown_words_reason,
)
from menagerie.studies.measures.probes import one_core, ridge

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer
    from menagerie.studies.runs.data import Material

FOLDS = 5
PENALTY = 1.0  # of additive fits: as much as one scene counts
SURE = 4  # standard errors by which E[D1 . D2] must be above 0
LEAST_KEPT = 0.5  # of the variance between quartets, once that between backgrounds is subtracted
ROUNDING = 1e-9  # share of embeddings' mean square: less is rounding
Embeddings = Float[np.ndarray, "v p q d"]
EDITED = "edited image"
PLACE = {"layer": EMBEDDING, "read": MEAN, "measure": "share"}  # of refused rows


class Geometry(NamedTuple):
    """Shares of variance. Measures that divide by D are refused where D can't be told from noise."""

    share: Measured
    """The binding share S = E[D1 . D2] / 4V, the share of V that comes from which object has which texture. V is the
    variance between scenes that views share, without that between backgrounds. S is refused where backgrounds have too
    few quartets (a scene, its swap and their mirrors) to estimate V."""
    compositions: Measured
    """R2 of D as a sum of one vector for each composition, the same in both places: how well a fit predicts D for other
    pairs of animals. It is 1 for such sums, and below 0 where the fit predicts nothing, the further the smaller the
    probe set."""
    placed_compositions: Measured
    """The same with one vector for each composition in each place."""


@one_core
def geometry(embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes) -> Geometry:
    """Measure the geometry of embeddings. The share is ours; R2 is as in 2602.24264; sums over compositions are as in
    Uselis et al. (2605.31503)."""
    axes.check(embeddings, least=2)
    z = embeddings.astype(np.float64)
    z = z - z.mean((1, 2), keepdims=True)
    d = axes.swap_differences(z)
    power = view_product(d)
    unsure = unsure_reason(power, axes, mean_square(z))
    fits = (no_number(unsure, 0.0) if unsure else composition_fit(d, power, axes, placed) for placed in (False, True))
    return Geometry(binding_share(z, power, axes), *fits)


def view_product(d: Float[np.ndarray, "v *n d"]) -> Float[np.ndarray, "*n"]:
    """Return the mean inner product between two different views, over all pairs of views."""
    views = len(d)
    return ((d.sum(0) ** 2).sum(-1) - (d**2).sum((0, -1))) / (views * (views - 1))


def unsure_reason(power: Float[np.ndarray, "p h"], axes: ProbeAxes, size: float) -> str:
    """Return why E[D1 . D2] is too uncertain, over pairs of animals, to divide by; empty if it isn't."""
    by_pair = np.bincount(axes.groups, power.mean(1)) / np.bincount(axes.groups)
    error = by_pair.std(ddof=1) / np.sqrt(len(by_pair))
    if by_pair.mean() > max(SURE * error, ROUNDING * size):
        return ""
    return f"views don't agree on what a swap changes: D is under {SURE} standard errors from 0"


def binding_share(z: Embeddings, power: Float[np.ndarray, "p h"], axes: ProbeAxes) -> Measured:
    """Return S. Subtracting the means of backgrounds also removes part of the variance between quartets, for which V is
    corrected. Within quartets no background differs."""
    kept = kept_without_backgrounds(axes)
    if kept < LEAST_KEPT:
        return no_number(
            f"backgrounds have too few quartets: subtracting them leaves {100 * kept:.0f} % of the variance between "
            f"quartets, and {100 * LEAST_KEPT:.0f} % are needed; take more animals or textures",
            0.0,
        )
    quartets = quartet_means(z, axes)
    varied = view_product(z - quartets).mean() + view_product(subtract_backgrounds(quartets, axes)).mean() / kept
    if varied <= ROUNDING * mean_square(z):
        return no_number("views don't agree on how scenes differ", 0.0)
    return Measured(power.mean() / (4 * varied), 0.0)


def quartet_means(z: Embeddings, axes: ProbeAxes) -> Embeddings:
    """Return, for each scene, the mean embedding of its quartet in the same view."""
    both = (z + z[:, :, axes.swaps]) / 2
    return (both + both[:, axes.mirrors]) / 2


def subtract_backgrounds(z: Embeddings, axes: ProbeAxes) -> Embeddings:
    """Subtract from each embedding the mean embedding of its background in the same view. Backgrounds are drawn anew
    for each view, so that their products between views are noise, which can make S negative."""
    without = z.copy()
    for embeddings, drawn in zip(without, axes.backgrounds, strict=True):
        for background in np.unique(drawn):
            embeddings[drawn == background] -= embeddings[drawn == background].mean(0)
    return without


def kept_without_backgrounds(axes: ProbeAxes) -> float:
    """Return the share of the variance between quartets that views share and `subtract_backgrounds` leaves, in the mean
    over all assignments of embeddings to quartets.

    For Q quartets it is the mean of tr(P1 P2) / (Q - 1) over pairs of views, where P subtracts the means of a view's B
    backgrounds. It is (Q - B) / (Q - 1) if all views have the same backgrounds, and about its square if they don't.
    """
    views, scenes = len(axes.backgrounds), axes.backgrounds[0].size
    drawn = axes.backgrounds.reshape(views, scenes, 1) == np.unique(axes.backgrounds)
    sizes = drawn.sum(1, keepdims=True)
    unit = drawn / np.sqrt(np.maximum(sizes, 1))
    common = (np.einsum("unb,vnc->uvbc", unit, unit) ** 2).sum((2, 3))
    kinds, quartets = common.diagonal(), scenes // 4
    traces = quartets - np.add.outer(kinds, kinds) + common
    return float((traces.sum() - traces.trace()) / (views * (views - 1)) / max(1, quartets - 1))


def mean_square(z: Embeddings) -> float:
    return float((z**2).sum(-1).mean())


def composition_fit(
    d: Float[np.ndarray, "v p h d"], power: Float[np.ndarray, "p h"], axes: ProbeAxes, placed: bool
) -> Measured:
    """Return R2 = E[2 D^1 . D2 - D^1 . D^2] / E[D1 . D2]: each view's D^ is fitted on other pairs of animals.

    All products are between two views, so that noise drops out. The noise of fits would lower R2, most where the probe
    set is small; noise that all pairs of a view share would raise it.
    """
    x = swap_regressors(axes, placed)
    folds, missed = axes.folds(FOLDS), 0.0
    for fold in range(FOLDS):
        train, test = folds != fold, folds == fold
        told = np.stack([x[test] @ ridge(as_rows(x[train]), as_rows(each[train]), PENALTY) for each in d])
        missed += view_product(d[:, test] - told).sum()
    return Measured(1 - missed / power.sum(), 0.0)


def swap_regressors(axes: ProbeAxes, placed: bool) -> Float[np.ndarray, "p h k"]:
    """Return the regressors of D, 1 for each composition of a scene and -1 for each of its swap; by place if
    `placed`."""
    textures = axes.textures[axes.half]
    kinds = int(np.prod(axes.kinds))
    x = np.zeros((len(axes.animals), len(textures), 2 if placed else 1, kinds))
    p, h = np.ogrid[: len(axes.animals), : len(textures)]
    for place in (0, 1):
        animal = axes.animals[:, None, place] * axes.kinds[1]
        np.add.at(x, (p, h, place * placed, animal + textures[:, place]), 1)
        np.add.at(x, (p, h, place * placed, animal + textures[:, 1 - place]), -1)
    return x.reshape(*x.shape[:2], -1)


def as_rows(x: Float[np.ndarray, "*n k"]) -> Float[np.ndarray, "m k"]:
    return x.reshape(-1, x.shape[-1])


@dataclass(frozen=True)
class EmbeddingGeometry(ProbeMeasure):
    """Rows of (part, layer, read, measure, value, chance, refused), as those of `Bits`: of the embeddings of images and
    of texts, of both together, and of edited embeddings of images. There is a single refused row if a scorer has no
    such embeddings, or if the captions have words that no training text has."""

    version: ClassVar[int] = 3  # R2 of what a swap changes, without noise

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        both = self.opened(scorer)
        axes, numbers = probe_axes(both[0])
        reason = unknown_words_reason([text for data in both for text in data.records.captions], material.texts)
        if not has_vectors(scorer):
            reason = f"{type(scorer).__name__} has no single vector for each image and each text"
        if reason:
            yield no_number(reason).row(part=TEXT, **PLACE)
            return
        texts = [text_vectors(scorer, captions_of(data))[numbers] for data in both]
        yield from geometry_rows(image_vectors(scorer, both[0])[numbers], texts, axes)


def geometry_rows(
    images: Float[np.ndarray, "v p q d"], texts: Sequence[Float[np.ndarray, "v p q d"]], axes: ProbeAxes
) -> Iterator[Row]:
    """Yield the measures of images and of texts. The two orders of mention count as views of the same images."""
    twice, of_texts = axes.repeated(len(texts)), np.concatenate(texts)
    yield from label_rows(IMAGE, EMBEDDING, MEAN, geometry(images, axes))
    yield from label_rows(TEXT, EMBEDDING, MEAN, geometry(of_texts, twice))
    if images.shape != texts[0].shape:
        sizes = f"embeddings of {images.shape[-1]} numbers an image and {texts[0].shape[-1]} a text"
        yield no_number(f"{sizes} don't share a space").row(part=BOTH, **PLACE)
        return
    yield from label_rows(BOTH, EMBEDDING, MEAN, alignment(np.concatenate([images] * len(texts)), of_texts, twice))
    unit = units(texts[0])
    swapped = unit - unit[:, :, axes.swaps]
    yield from label_rows(EDITED, EMBEDDING, MEAN, measure_edits(images, axes, lambda moved: (moved * swapped).sum(-1)))

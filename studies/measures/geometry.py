"""Geometry: how much of the variance of embeddings comes from which object has which texture, and in what form; how far
images and texts agree on what a swap changes, and what a matrix could repair; whether a scorer takes a scene for its
swap once the scene's embedding is moved towards the swap's. As a measure of finished runs.

D is a scene's embedding minus its swap's. Inner products of D are taken between two views, so that the noise of a
single view drops out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Num
from scipy.optimize import minimize
from scipy.special import expit

from menagerie.envs.core.errors import UserError
from menagerie.studies.frame.measure import Row
from menagerie.studies.frame.parts import Rows
from menagerie.studies.measures import probe_set as probed
from menagerie.studies.measures.factors import linear_factors
from menagerie.studies.measures.probe_set import BOTH, EMBEDDING, IMAGE, MEAN, TEXT, Measured, ProbeAxes, no_number
from menagerie.studies.measures.probes import one_core, ridge, view_product
from menagerie.studies.measures.products import ROUNDING, composition_means, product_fits, view_means

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer
    from menagerie.studies.runs.data import Material

FOLDS, EDIT_FOLDS = 5, 2
PENALTY = 1.0  # of additive fits: as much as one scene counts
SURE = 4  # standard errors by which E[D1 . D2] must be above 0
LEAST_KEPT = 0.5  # of the variance between quartets, once that between backgrounds is subtracted
MATRIX_PENALTY, STEPS = 1e-3, 40  # of the matrix between images and texts
EDITED = "edited image"
PLACE = {"layer": EMBEDDING, "read": MEAN, "measure": "share"}  # of refused rows
Embeddings = Float[np.ndarray, "v p q d"]
Margins = Callable[[Num[np.ndarray, "v p q d"]], Float[np.ndarray, "v p q"]]
"""From embeddings to margins: s(x, c) - s(x, c') for each scene x, its caption c and the swapped caption c'."""


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
    both = (z + z[:, :, axes.swaps]) / 2
    quartets = (both + both[:, axes.mirrors]) / 2  # the mean of each scene's quartet in the same view
    varied = view_product(z - quartets).mean() + view_product(subtract_backgrounds(quartets, axes)).mean() / kept
    if varied <= ROUNDING * mean_square(z):
        return no_number("views don't agree on how scenes differ", 0.0)
    return Measured(power.mean() / (4 * varied), 0.0)


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
    over all assignments of embeddings to quartets. For Q quartets it is the mean of tr(P1 P2) / (Q - 1) over pairs of
    views, where P subtracts the means of a view's backgrounds."""
    views, scenes = len(axes.backgrounds), axes.backgrounds[0].size
    drawn = axes.backgrounds.reshape(views, scenes, 1) == np.unique(axes.backgrounds)
    unit = drawn / np.sqrt(np.maximum(drawn.sum(1, keepdims=True), 1))
    common = (np.einsum("unb,vnc->uvbc", unit, unit) ** 2).sum((2, 3))
    kinds, quartets = common.diagonal(), scenes // 4
    traces = quartets - np.add.outer(kinds, kinds) + common
    return float((traces.sum() - traces.trace()) / (views * (views - 1)) / max(1, quartets - 1))


def mean_square(z: Embeddings) -> float:
    return float((z**2).sum(-1).mean())


def composition_fit(
    d: Float[np.ndarray, "v p h d"], power: Float[np.ndarray, "p h"], axes: ProbeAxes, placed: bool
) -> Measured:
    """Return R2 = E[2 D^1 . D2 - D^1 . D^2] / E[D1 . D2]: each view's D^ is fitted on other pairs of animals. Within a
    view, the noise of fits would lower R2, and noise that all pairs share would raise it."""
    x = swap_regressors(axes, placed)
    folds, missed = axes.folds(FOLDS), 0.0
    for fold in range(FOLDS):
        train, test = folds != fold, folds == fold
        rows = x[train].reshape(-1, x.shape[-1])
        fits = [ridge(rows, each[train].reshape(-1, d.shape[-1]), PENALTY) for each in d]
        missed += view_product(d[:, test] - np.stack([x[test] @ fit for fit in fits])).sum()
    return Measured(1 - missed / power.sum(), 0.0)


def swap_regressors(axes: ProbeAxes, placed: bool) -> Float[np.ndarray, "p h k"]:
    """Return the regressors of D: 1 for each composition of a scene, -1 for each of its swap; or by place."""
    textures = axes.textures[axes.half]
    x = np.zeros((len(axes.animals), len(textures), 2 if placed else 1, int(np.prod(axes.kinds))))
    p, h = np.ogrid[: len(axes.animals), : len(textures)]
    for place in (0, 1):
        animal = axes.animals[:, None, place] * axes.kinds[1]
        np.add.at(x, (p, h, place * placed, animal + textures[:, place]), 1)
        np.add.at(x, (p, h, place * placed, animal + textures[:, 1 - place]), -1)
    return x.reshape(*x.shape[:2], -1)


class Alignment(NamedTuple):
    """How well unit vectors agree: x of an image, t of its text and t' of the swapped text."""

    gap: Measured
    """|mean image - mean text|^2, the gap of Liang et al. (2203.02053); chance is its value for orthogonal means."""
    cosine: Measured
    """Mean cos(D_image, D_text)."""
    before: Measured
    """Share of swaps that are right: x'(t - t') > 0. A tie counts one half."""
    after: Measured
    """The same with a matrix between the embeddings: x'(I + A)(t - t') > 0."""


@one_core
def alignment(images: Num[np.ndarray, "v p q d"], texts: Num[np.ndarray, "v p q d"], axes: ProbeAxes) -> Alignment:
    """Measure how far embeddings of images and texts agree. The matrix A is fitted with the logistic loss on other
    pairs of animals: it shows what LABCLIP (Koishigarina et al., 2502.03566) could repair."""
    for embeddings in (images, texts):
        axes.check(embeddings)
    x, t = units(images), units(texts)
    d = t - t[:, :, axes.swaps]
    one, two = x.mean((0, 1, 2)), t.mean((0, 1, 2))
    gap = Measured(((one - two) ** 2).sum(), (one**2).sum() + (two**2).sum())
    right, repaired = (probed.share_right(margins) for margins in ((x * d).sum(-1), margins_after_matrix(x, d, axes)))
    return Alignment(gap, swap_cosine(x, t, axes), right, repaired)


def units(embeddings: Num[np.ndarray, "v p q d"]) -> Embeddings:
    sizes = np.linalg.norm(embeddings.astype(np.float64), axis=-1, keepdims=True)
    if not sizes.all():
        raise UserError("an embedding of the probe set is 0 and has no direction")
    return embeddings / sizes


def swap_cosine(x: Embeddings, t: Embeddings, axes: ProbeAxes) -> Measured:
    one, two = axes.swap_differences(x), axes.swap_differences(t)
    sizes = np.linalg.norm(one, axis=-1) * np.linalg.norm(two, axis=-1)
    moved = sizes > 1e-12
    if not moved.any():
        return no_number("a swap changes no embedding", 0.0)
    return Measured(((one * two).sum(-1)[moved] / sizes[moved]).mean(), 0.0)


def margins_after_matrix(x: Embeddings, d: Embeddings, axes: ProbeAxes) -> Float[np.ndarray, "v p q"]:
    """Return the margins x'(I + A)d, each with a matrix fitted on other pairs of animals."""
    margins, folds = np.zeros(x.shape[:3]), axes.folds(FOLDS)
    for fold in range(FOLDS):
        train = folds != fold
        matrix = fit_matrix(*(part[:, train].reshape(-1, part.shape[-1]).astype(np.float32) for part in (x, d)))
        margins[:, ~train] = ((x[:, ~train] @ matrix) * d[:, ~train]).sum(-1)
    return margins


def fit_matrix(x: Float[np.ndarray, "n d"], d: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "d d"]:
    """Return the I + A that minimises mean log(1 + exp(-b x·(I + A)d)) + MATRIX_PENALTY |A|^2 over A and b > 0."""
    width = x.shape[1]
    unit = np.eye(width, dtype=np.float32)

    def loss(flat: Float[np.ndarray, " k"]) -> tuple[float, Float[np.ndarray, " k"]]:
        a, scale = flat[:-1].reshape(width, width).astype(np.float32), float(np.exp(flat[-1]))
        margins = ((x @ (unit + a)) * d).sum(-1).astype(np.float64)
        slope = -scale * expit(-scale * margins) / len(x)
        gradient = x.T @ (slope[:, None].astype(np.float32) * d) + 2 * MATRIX_PENALTY * a
        value = np.logaddexp(0, -scale * margins).mean() + MATRIX_PENALTY * (a.astype(np.float64) ** 2).sum()
        return float(value), np.append(gradient.reshape(-1).astype(np.float64), slope @ margins)

    start = np.append(np.zeros(width * width), 3.0)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    return np.eye(width) + found[:-1].reshape(width, width)


class Edits(NamedTuple):
    """Of the scenes whose own caption is preferred, the share in which an edit makes the swapped caption preferred.
    Chance is the share after a move as far in a random direction."""

    compositions: Measured
    """Moved by the mean embeddings of the scene's own compositions, in their places."""
    others: Measured
    """Moved by the mean embeddings of the same textures on two other animals."""
    places: Measured
    """Moved by the mean embeddings of textures in their places, over all animals."""


def measure_edits(embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes, margins: Margins, seed: int = 0) -> Edits:
    """Measure how often edits change which caption is preferred. For both objects an edit adds omega_target -
    omega_source to an embedding z, where omega is the mean embedding of a composition or of a texture in a place, over
    scenes of other pairs of animals: our causal test of the vectors of compositions of Uselis et al. (2605.31503)."""
    axes.check(embeddings)
    right = margins(embeddings) > 0
    if not right.any():
        return Edits(*[no_number("no scene's own caption is preferred before the edit")] * 3)
    kinds, folds, random = axes.kinds[0], axes.folds(EDIT_FOLDS), np.random.default_rng(seed)
    means = [composition_means(embeddings, axes, folds != fold) for fold in range(EDIT_FOLDS)]
    others = np.array([random.choice(np.setdiff1d(np.arange(kinds), pair), 2, replace=False) for pair in axes.animals])
    moves = [
        np.stack([exchange(means[fold], axes, pair) for fold, pair in zip(folds, animals, strict=True)])
        for animals in (axes.animals, others, [None] * len(folds))
    ]
    drawn = random.normal(size=moves[0].shape)
    sizes = [np.linalg.norm(its, axis=-1, keepdims=True) for its in (moves[0], drawn)]
    *flipped, by_chance = (
        float(((margins(embeddings + move.astype(embeddings.dtype)) < 0) & right).sum() / right.sum())
        for move in (*moves, drawn * sizes[0] / sizes[1])
    )
    return Edits(*(Measured(share, by_chance) for share in flipped))


def exchange(
    means: Num[np.ndarray, "2 a t d"], axes: ProbeAxes, animals: Num[np.ndarray, " 2"] | None
) -> Num[np.ndarray, "q d"]:
    """Return how embeddings change when two animals (None: all, on average) exchange each pair of textures."""
    left, right = means.mean(1) if animals is None else means[[0, 1], animals]
    t, u = axes.textures.T
    return left[u] - left[t] + right[t] - right[u]


@dataclass(frozen=True)
class EmbeddingGeometry(probed.ProbeMeasure):
    """Rows of (part, layer, read, measure, value, chance, refused), as those of `Bits`: of the embeddings of images and
    of texts, of both together, and of edited embeddings of images. There is a single refused row if a scorer has no
    such embeddings, or if the captions have words that no training text has."""

    version: ClassVar[int] = 4  # linear factors, and fits of sums and of products

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        both = self.opened(scorer)
        axes, numbers = probed.probe_axes(both[0])
        reason = probed.unknown_words_reason([text for data in both for text in data.records.captions], material.texts)
        if not probed.has_vectors(scorer):
            reason = f"{type(scorer).__name__} has no single vector for each image and each text"
        if reason:
            yield no_number(reason).row(part=TEXT, **PLACE)
            return
        texts = [probed.text_layers(scorer, probed.captions_of(data))[probed.VECTOR][numbers] for data in both]
        yield from geometry_rows(probed.image_layers(scorer, both[0])[probed.VECTOR][numbers], texts, axes)


def geometry_rows(
    images: Float[np.ndarray, "v p q d"], texts: Sequence[Float[np.ndarray, "v p q d"]], axes: ProbeAxes
) -> Iterator[Row]:
    """Yield the measures of images and of texts. The two orders of mention count as views of the same images."""
    twice, of_texts = axes.repeated(len(texts)), np.concatenate(texts)
    for part, its, views in ((IMAGE, images, axes), (TEXT, of_texts, twice)):
        found = geometry(its, views), linear_factors(its, views), product_fits(view_means(its, views))
        yield from chain.from_iterable(probed.label_rows(part, EMBEDDING, MEAN, each) for each in found)
    if images.shape != texts[0].shape:
        sizes = f"embeddings of {images.shape[-1]} numbers an image and {texts[0].shape[-1]} a text"
        yield no_number(f"{sizes} don't share a space").row(part=BOTH, **PLACE)
        return
    agreement = alignment(np.concatenate([images] * len(texts)), of_texts, twice)
    yield from probed.label_rows(BOTH, EMBEDDING, MEAN, agreement)
    unit = units(texts[0])
    swapped = unit - unit[:, :, axes.swaps]
    edits = measure_edits(images, axes, lambda moved: (moved * swapped).sum(-1))
    yield from probed.label_rows(EDITED, EMBEDDING, MEAN, edits)


SHOWN = {
    (TEXT, "share"): "text: binding share",
    (IMAGE, "share"): "image: binding share",
    (BOTH, "gap"): "gap",
    (BOTH, "cosine"): "cos of what a swap changes",
    (BOTH, "before"): "swaps right",
    (BOTH, "after"): "after one matrix",
    (EDITED, "compositions"): "edit: compositions",
    (EDITED, "others"): "other compositions",
    (EDITED, "places"): "textures in places",
}
"""The rows of the table of alignment, with their names in it."""


def alignment_table(rows: pd.DataFrame) -> Rows:
    """Return a table of how images and texts agree, and of edits; places of a grid are pooled."""
    named = rows.assign(measure=[SHOWN.get(key) for key in zip(rows["part"], rows["measure"], strict=True)])
    order = named.dropna(subset="measure").sort_values("measure", key=lambda its: its.map([*SHOWN.values()].index))
    return probed.table_by_model("alignment", order, ("measure",), 1, 2)

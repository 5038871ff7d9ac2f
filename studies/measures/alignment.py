"""Alignment of images and texts: how far they agree on what a swap changes, what a matrix could repair, and whether a
scorer takes a scene for its swap once the scene's embedding is moved towards the swap's."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num
from scipy.optimize import minimize
from scipy.special import expit

from menagerie.envs.core.errors import UserError
from menagerie.studies.measures.axes import ProbeAxes, composition_means
from menagerie.studies.measures.measured import Measured, no_number, share_right
from menagerie.studies.measures.probes import one_core

FOLDS, EDIT_FOLDS = 5, 2
PENALTY = 1e-3
STEPS = 40
Units = Float[np.ndarray, "v p q d"]
Margins = Callable[[Num[np.ndarray, "v p q d"]], Float[np.ndarray, "v p q"]]
"""From embeddings to margins: s(x, c) - s(x, c') for each scene x, its caption c and the swapped caption c'."""


class Alignment(NamedTuple):
    """How well unit vectors agree: x of an image, t of its text and t' of the swapped text."""

    gap: Measured
    """|mean image - mean text|^2, the gap of Liang et al. (2203.02053); chance is its value for orthogonal means."""
    cosine: Measured
    """Mean cos(D_image, D_text), where D is an embedding minus its swap's."""
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
    after = share_right(margins_after_matrix(x, d, axes))
    return Alignment(gap, swap_cosine(x, t, axes), share_right((x * d).sum(-1)), after)


def units(embeddings: Num[np.ndarray, "v p q d"]) -> Units:
    sizes = np.linalg.norm(embeddings.astype(np.float64), axis=-1, keepdims=True)
    if not sizes.all():
        raise UserError("an embedding of the probe set is 0 and has no direction")
    return embeddings / sizes


def swap_cosine(x: Units, t: Units, axes: ProbeAxes) -> Measured:
    one, two = axes.swap_differences(x), axes.swap_differences(t)
    sizes = np.linalg.norm(one, axis=-1) * np.linalg.norm(two, axis=-1)
    moved = sizes > 1e-12
    if not moved.any():
        return no_number("a swap changes no embedding", 0.0)
    return Measured(((one * two).sum(-1)[moved] / sizes[moved]).mean(), 0.0)


def margins_after_matrix(x: Units, d: Units, axes: ProbeAxes) -> Float[np.ndarray, "v p q"]:
    """Return the margins x'(I + A)d, each with a matrix fitted on other pairs of animals."""
    margins, folds = np.zeros(x.shape[:3]), axes.folds(FOLDS)
    for fold in range(FOLDS):
        train = folds != fold
        matrix = fit_matrix(*(part[:, train].reshape(-1, part.shape[-1]).astype(np.float32) for part in (x, d)))
        margins[:, ~train] = ((x[:, ~train] @ matrix) * d[:, ~train]).sum(-1)
    return margins


def fit_matrix(x: Float[np.ndarray, "n d"], d: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "d d"]:
    """Return the matrix I + A that minimises mean log(1 + exp(-b x·(I + A)d)) + PENALTY |A|^2 over A and b > 0."""
    width = x.shape[1]
    unit = np.eye(width, dtype=np.float32)

    def loss(flat: Float[np.ndarray, " k"]) -> tuple[float, Float[np.ndarray, " k"]]:
        a, scale = flat[:-1].reshape(width, width).astype(np.float32), float(np.exp(flat[-1]))
        margins = ((x @ (unit + a)) * d).sum(-1).astype(np.float64)
        slope = -scale * expit(-scale * margins) / len(x)
        gradient = x.T @ (slope[:, None].astype(np.float32) * d) + 2 * PENALTY * a
        value = np.logaddexp(0, -scale * margins).mean() + PENALTY * (a.astype(np.float64) ** 2).sum()
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
    scenes of other pairs of animals.

    Uselis et al. (2605.31503) ask how vectors of compositions are composed; this is our causal test of such vectors."""
    axes.check(embeddings)
    right = margins(embeddings) > 0
    if not right.any():
        return Edits(*[no_number("no scene's own caption is preferred before the edit")] * 3)
    kinds, folds, random = axes.kinds[0], axes.folds(EDIT_FOLDS), np.random.default_rng(seed)
    means = [composition_means(embeddings, axes, folds != fold) for fold in range(EDIT_FOLDS)]
    others = np.array([random.choice(np.setdiff1d(np.arange(kinds), pair), 2, replace=False) for pair in axes.animals])
    own, of_others, of_places = (
        np.stack([exchange(means[fold], axes, pair) for fold, pair in zip(folds, animals, strict=True)])
        for animals in (axes.animals, others, [None] * len(folds))
    )
    drawn = random.normal(size=own.shape)
    by_chance = drawn * np.linalg.norm(own, axis=-1, keepdims=True) / np.linalg.norm(drawn, axis=-1, keepdims=True)
    flipped = [
        float(((margins(embeddings + move.astype(embeddings.dtype)) < 0) & right).sum() / right.sum())
        for move in (own, of_others, of_places, by_chance)
    ]
    return Edits(*(Measured(share, flipped[-1]) for share in flipped[:-1]))


def exchange(
    means: Num[np.ndarray, "2 a t d"], axes: ProbeAxes, animals: Num[np.ndarray, " 2"] | None
) -> Num[np.ndarray, "q d"]:
    """Return by how much embeddings change when two animals exchange textures, for each pair of textures; in the mean
    over all animals without `animals`."""
    (left, right), (t, u) = means if animals is None else means[[0, 1], animals], axes.textures.T
    left, right = (its.mean(0) if animals is None else its for its in (left, right))
    return left[u] - left[t] + right[t] - right[u]

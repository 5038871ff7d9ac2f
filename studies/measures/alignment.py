"""Alignment: how far embeddings of images and texts agree on what a swap changes, and what a matrix could repair."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num
from scipy.optimize import minimize
from scipy.special import expit

from menagerie.envs.core.errors import UserError
from menagerie.studies.measures.axes import ProbeAxes
from menagerie.studies.measures.linear import one_core
from menagerie.studies.measures.margins import bits
from menagerie.studies.measures.measured import Measured, no_number, share_right

FOLDS = 5
PENALTY = 1e-3
STEPS = 40
Units = Float[np.ndarray, "v p q d"]


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
    bits: Measured
    """Bits of the margins x'(t - t')."""
    bits_after: Measured


@one_core
def alignment(images: Num[np.ndarray, "v p q d"], texts: Num[np.ndarray, "v p q d"], axes: ProbeAxes) -> Alignment:
    """Measure how far embeddings of images and texts agree. The matrix A is fitted with the logistic loss on other
    pairs of animals: it shows what LABCLIP (Koishigarina et al., 2502.03566) could repair."""
    for embeddings in (images, texts):
        axes.check(embeddings)
    if images.shape != texts.shape:
        raise UserError(f"embeddings of images {images.shape} and of texts {texts.shape} don't share a space")
    x, t = units(images), units(texts)
    d = t - t[:, :, axes.swaps]
    before, after = (x * d).sum(-1), margins_after_matrix(x, d, axes)
    shares = share_right(before), share_right(after)
    return Alignment(modality_gap(x, t), swap_cosine(x, t, axes), *shares, bits(before), bits(after))


def units(embeddings: Num[np.ndarray, "v p q d"]) -> Units:
    sizes = np.linalg.norm(embeddings.astype(np.float64), axis=-1, keepdims=True)
    if not sizes.all():
        raise UserError("an embedding of the probe set is 0 and has no direction")
    return embeddings / sizes


def modality_gap(x: Units, t: Units) -> Measured:
    one, two = x.mean((0, 1, 2)), t.mean((0, 1, 2))
    return Measured(((one - two) ** 2).sum(), (one**2).sum() + (two**2).sum())


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

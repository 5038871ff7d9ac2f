"""Embeddings of compositions: their means, and whether they can be predicted from those of other compositions."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Num

from menagerie.envs.core.errors import UserError
from menagerie.studies.measures.probe_set import Measured, ProbeAxes, no_number
from menagerie.studies.measures.probes import one_core, ridge, view_product

STARTS = 3  # random ones; the best on the fitted compositions is taken
SWEEPS = 25
PENALTY = 1e-2
SUM_PENALTY = 1e-3
LEAST_SHARED = 0.1  # of the variance between compositions that views share; below, R2 divides by noise
ROUNDING = 1e-9  # share of embeddings' mean square: less is rounding


def composition_means(
    embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes, kept: Bool[np.ndarray, " p"] | None = None
) -> Num[np.ndarray, "2 a t d"]:
    """Return the mean embedding of the scenes with each composition (animal, texture) in each place, left and right,
    over all views. Only kept pairs of animals count. Raises unless these have each animal in both places."""
    chosen = np.ones(len(axes.animals), bool) if kept is None else kept
    mean, means = embeddings.mean(0), np.zeros((2, *axes.kinds, embeddings.shape[-1]), embeddings.dtype)
    for place, animal in np.ndindex(2, axes.kinds[0]):
        of_animal = mean[chosen & (axes.animals[:, place] == animal)].astype(float)
        if not len(of_animal):
            raise UserError(
                "the probe set is too small: without held-out scenes, an animal is never in one of the places"
            )
        for texture in range(axes.kinds[1]):
            means[place, animal, texture] = of_animal[:, axes.textures[:, place] == texture].mean((0, 1))
    return means


class Products(NamedTuple):
    """R2 on held-out compositions of what views share; chance predicts the mean of the other compositions."""

    sum_fit: Measured
    """R2 of the sum alpha_animal + tau_texture."""
    product_fit: Measured
    """R2 of that sum plus a product. The rank with the highest R2 needn't be the embedding's: for a product of rank 1
    of 8 animals and 4 textures R2 is 0.99, 0.56 and 0.60 at ranks 1, 2 and 3."""
    product_gain: Measured
    """R2 of the sum with a product minus that of the sum alone."""


@one_core
def product_fits(omega: Num[np.ndarray, "v a t d"], rank: int = 1) -> Products:
    """Fit the embeddings of compositions by sums and by sum + sum_r A_ar B_tr C_r, alternating least squares.

    Each object is held out once, one texture of each animal at a time, as in Uselis et al. (2605.31503). `omega` are
    each view's means over scenes (`view_means`), or embeddings of single objects. Fits are to the mean over views. What
    they leave is multiplied between views, so that the noise of held-out compositions, which few scenes have much of,
    doesn't lower R2.
    """
    animals, textures = omega.shape[1:3]
    if textures < 3 or animals < textures or len(omega) < 2:
        each = f"{len(omega)} of {textures} and {animals}"
        reason = f"product fits need 2 views, of 3 textures and at least as many animals, not {each}"
        return Products(*[no_number(reason, 0.0)] * 3)
    y = omega.astype(np.float64)
    mean, left = y.mean(0), np.zeros((3, *y.shape))
    number = np.add.outer(np.arange(animals), np.arange(textures)) % textures
    for fold in range(textures):
        kept = number != fold
        fits = (mean[kept].mean(0), *(predict_compositions(mean, kept, of)[~kept] for of in (0, rank)))
        for rest, told in zip(left, fits, strict=True):
            rest[:, ~kept] = y[:, ~kept] - told
    varied, *missed = (view_product(rest).sum() for rest in left)
    if varied <= max(LEAST_SHARED * (left[0] ** 2).sum() / len(y), ROUNDING * (y**2).sum()):
        return Products(*[no_number("views don't agree on how compositions differ", 0.0)] * 3)
    found = [1 - its / varied for its in missed]
    return Products(*(Measured(its, 0.0) for its in (*found, found[1] - found[0])))


def view_means(embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes) -> Num[np.ndarray, "v a t d"]:
    """Return the mean embedding of the scenes with each composition in each view, over both places."""
    return np.stack([composition_means(view[None], axes).mean(0) for view in embeddings])


def predict_compositions(
    y: Float[np.ndarray, "a t d"], kept: Bool[np.ndarray, "a t"], rank: int
) -> Float[np.ndarray, "a t d"]:
    """Predict the embeddings of all compositions by a fit to the kept ones."""
    if not rank:
        return predict_by_sum(y, kept)
    found = (predict_by_product(y, kept, rank, seed) for seed in range(STARTS))
    return min(found, key=lambda fit: ((y - fit)[kept] ** 2).sum())


def predict_by_sum(y: Float[np.ndarray, "a t d"], kept: Bool[np.ndarray, "a t"]) -> Float[np.ndarray, "a t d"]:
    """Predict each composition by the sum of an animal's and a texture's vector, fitted to the kept compositions."""
    animals, textures, width = y.shape
    x = np.concatenate([np.repeat(np.eye(animals), textures, 0), np.tile(np.eye(textures), (animals, 1))], 1)
    mean = y[kept].mean(0)
    return (x @ ridge(x[kept.reshape(-1)], y[kept] - mean, SUM_PENALTY)).reshape(animals, textures, width) + mean


def predict_by_product(
    y: Float[np.ndarray, "a t d"], kept: Bool[np.ndarray, "a t"], rank: int, seed: int
) -> Float[np.ndarray, "a t d"]:
    """Predict all compositions by a sum and a product, each fitted in turn to what the other leaves."""
    sum_, random = predict_by_sum(y, kept), np.random.default_rng(seed)
    scale = np.sqrt(((y - sum_)[kept] ** 2).mean()) + 1e-12
    a, b, c = (random.normal(size=(n, rank)) for n in y.shape)
    product = np.zeros_like(y)
    for _ in range(SWEEPS):
        rest = (y - sum_) / scale
        a = fit_factor(rest, kept, b, c)
        b = fit_factor(rest.swapaxes(0, 1), kept.T, a, c)
        terms = (a[:, None] * b)[kept]
        c = ridge(terms, rest[kept], PENALTY).T
        product = (a[:, None] * b) @ c.T * scale
        sum_ = predict_by_sum(y - product, kept)
    return sum_ + product


def fit_factor(
    rest: Float[np.ndarray, "n m d"],
    kept: Bool[np.ndarray, "n m"],
    other: Float[np.ndarray, "m r"],
    c: Float[np.ndarray, "d r"],
) -> Float[np.ndarray, "n r"]:
    """Fit the factor of the first axis by least squares, given the two others."""
    squares = np.einsum("nm,mr,ms->nrs", kept, other, other) * (c.T @ c)
    targets = np.einsum("nm,mr,nmr->nr", kept, other, rest @ c)
    return np.linalg.solve(squares + PENALTY * len(c) * np.eye(len(squares[0])), targets[..., None])[..., 0]

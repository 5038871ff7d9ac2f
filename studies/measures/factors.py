"""Linear factors of embeddings: how far an embedding is a sum of vectors of its animals and of its textures, in how few
dimensions these vectors lie, and at what angle. Uselis et al. (2602.24264) derive that embeddings which generalise to
unseen compositions are such sums, of vectors that are orthogonal between the two concepts."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from menagerie.studies.measures.probe_set import Measured, ProbeAxes, no_number
from menagerie.studies.measures.probes import one_core, ridge, view_product
from menagerie.studies.measures.products import ROUNDING

FOLDS = 5
PENALTY = 1.0  # as much as one scene counts
EXPLAINED = 0.95


class Factors(NamedTuple):
    """A fit of embeddings by a sum: mu + the vector of each animal, of each texture, and of the background."""

    factor_fit: Measured
    """R2 of animals and textures, on pairs of animals that the fit didn't see, of what views share beyond their
    backgrounds. Products are between two views, so that noise drops out. What isn't a sum disturbs a fit to few scenes:
    R2 is then too low. How much depends on what disturbs: with 8 animals and 4 textures the missing part 1 - R2 is
    within 4 % of that of a fit to all scenes for effects of compositions, places or single scenes, and twice as large
    for effects of pairs of animals. So ranks of models may change."""
    factor_components: Measured
    """k95: how many principal components hold 95 % of the variance of animals' vectors, plus that number of textures.
    Chance is the most possible: (animals - 1) + (textures - 1), or the width."""
    factor_cosine: Measured
    """Mean |cos| between the vectors of animals and of textures, each minus their mean; 0: orthogonal. Chance is that
    of random directions."""


@one_core
def linear_factors(embeddings: Num[np.ndarray, "v p q d"], axes: ProbeAxes) -> Factors:
    """Measure the linear factors of embeddings."""
    axes.check(embeddings, least=2)
    z = embeddings.astype(np.float64)
    z = z - z.mean((1, 2), keepdims=True)
    counts, animals = concept_counts(axes), axes.kinds[0]
    fits = [fit_sums(view, its, np.ones(len(z[0]), bool)) for view, its in zip(z, counts, strict=True)]
    mean = np.mean(fits, 0)
    vectors = [its - its.mean(0) for its in (mean[:animals], mean[animals : sum(axes.kinds)])]
    alive = [np.linalg.norm(its, axis=1).min() ** 2 > ROUNDING * (z**2).sum(-1).mean() for its in vectors]
    if not all(alive):
        return Factors(sum_fit(z, counts, axes), *[no_number("embeddings don't differ by animals, or by textures")] * 2)
    animal, texture = (its / np.linalg.norm(its, axis=1, keepdims=True) for its in vectors)
    width = z.shape[-1]
    cosine = Measured(float(np.abs(animal @ texture.T).mean()), float(np.sqrt(2 / (np.pi * width))))
    most = float(sum(min(kinds - 1, width) for kinds in axes.kinds))
    return Factors(sum_fit(z, counts, axes), Measured(float(sum(map(count_components, vectors))), most), cosine)


def concept_counts(axes: ProbeAxes) -> Float[np.ndarray, "v p q k"]:
    """Return how often each animal, texture and background is in each scene."""
    animals = (axes.animals[:, :, None] == np.arange(axes.kinds[0])).sum(1)[:, None]
    textures = (axes.textures[:, :, None] == np.arange(axes.kinds[1])).sum(1)
    backgrounds = axes.backgrounds[..., None] == np.unique(axes.backgrounds)
    shape = axes.backgrounds.shape
    counts = (np.broadcast_to(its, (*shape, its.shape[-1])) for its in (animals, textures, backgrounds))
    return np.concatenate([*counts], -1, dtype=float)


def fit_sums(
    view: Float[np.ndarray, "p q d"], counts: Float[np.ndarray, "p q k"], kept: Bool[np.ndarray, " p"]
) -> Float[np.ndarray, "k d"]:
    """Return the vectors whose sums fit the embeddings of the kept pairs of animals best."""
    return ridge(counts[kept].reshape(-1, counts.shape[-1]), view[kept].reshape(-1, view.shape[-1]), PENALTY)


def sum_fit(z: Float[np.ndarray, "v p q d"], counts: Float[np.ndarray, "v p q k"], axes: ProbeAxes) -> Measured:
    """Return R2 = 1 - E[r1 . r2] / E[b1 . b2]: r is what the fit of a view leaves, b what backgrounds alone leave."""
    folds, backgrounds = axes.folds(FOLDS), counts[..., sum(axes.kinds) :]
    missed, varied = (product_of_residuals(z, its, folds) for its in (counts, backgrounds))
    if varied <= ROUNDING * (z**2).sum():
        return no_number("views don't agree on how scenes differ", 0.0)
    return Measured(1 - missed / varied, 0.0)


def product_of_residuals(
    z: Float[np.ndarray, "v p q d"], counts: Float[np.ndarray, "v p q k"], folds: Int[np.ndarray, " p"]
) -> float:
    """Return the sum over folds of the products, between views, of what fits to the other folds leave."""
    total = 0.0
    for fold in range(FOLDS):
        train, test = folds != fold, folds == fold
        predicted = [its[test] @ fit_sums(view, its, train) for view, its in zip(z, counts, strict=True)]
        total += view_product(z[:, test] - np.stack(predicted)).sum()
    return total


def count_components(vectors: Float[np.ndarray, "k d"]) -> int:
    """Return how many principal components hold 95 % of the variance of some vectors whose mean is 0."""
    power = np.linalg.svd(vectors, compute_uv=False) ** 2
    return int(np.searchsorted(np.cumsum(power) / power.sum(), EXPLAINED) + 1)

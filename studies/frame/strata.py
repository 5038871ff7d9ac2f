"""Strata of swaps by how many compositions training never showed, in a scene or in its swap, whichever has more: what
each unseen one costs a model, and whether models keep their order.

Stratum 0 has the tests whose scenes share neither arrangement nor bag of words with training. A stratum's accuracy is
the mean of that on pairs of training and that on other pairs, as strata have other shares of these.
"""

import math
from collections.abc import Iterator
from functools import cache, partial
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float64

from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import COMPOSITION_TESTS, BindingRecipe
from menagerie.studies.analysis.intervals import NOTHING, Estimate, has_interval, resampled_means
from menagerie.studies.frame.estimate import clusters, contrast, points_in
from menagerie.studies.frame.parts import EstimateTable, Heading, Part, Table
from menagerie.studies.frame.records import Records

STRATA_OF_TESTS = {"different_bag": "0", "unseen_pairs": "0"} | {t: str(n) for t, n in COMPOSITION_TESTS.items()}
STRATA, PAIRS = ("0", "1", "2"), ("pairs of training", "other pairs")
GROUPS = tuple(f"{stratum}: {pairs}" for stratum, pairs in product(STRATA, PAIRS))
CHANGES = {"slope": (-0.5, 0.0, 0.5), "0 to 1": (-1.0, 1.0, 0.0), "1 to 2": (0.0, -1.0, 1.0)}
"""Weights of the means of the strata. The slope is that of least squares."""
ALL_MODELS = "all models"
FEWEST_MODELS = 6  # with fewer, their order says little
LEAST_SIGNAL = 0.5
"""Least share of the variance between models that isn't noise, for their order to be compared."""
Scores = Float64[np.ndarray, "draws models"]


def stratum_parts(swaps: Records) -> Iterator[Part]:
    """Yield accuracy by stratum, its changes and the rank correlations of models; nothing without these tests."""
    if not COMPOSITION_TESTS.keys() <= {*swaps.tests}:
        return
    tested = swaps.where(subset=tuple(STRATA_OF_TESTS))
    groups = tested.regroup(GROUPS, lambda arm: groups_of(swaps.folder(arm), arm.cell.data.recipe))
    points = groups.points
    if {*GROUPS} <= {*points.get("subset", ())}:
        yield Heading("By unseen compositions", SAYS)
        yield Table("strata", groups, ("model",), intervals=True)
        changes = {(model, name): its for model, name, its in stratum_changes(points)}
        yield EstimateTable("strata-changes", ("model", "change"), changes, says=CHANGES_SAY)
        if points["model"].nunique() >= FEWEST_MODELS:
            orders = {both: rank_correlation(points, *both) for both in combinations(STRATA, 2)}
            yield EstimateTable("strata-orders", ("stratum", "other"), orders, says=ORDERS_SAY)


@cache  # finished runs don't change
def groups_of(folder: Path, recipe: BindingRecipe) -> dict[str, str]:
    """Return the group of each scene of a run's tests of `STRATA_OF_TESTS`: its stratum, and whether training shows its
    pair."""
    shown = {" + ".join(sorted(pair)) for pair in recipe.roles(load_world(recipe.world), "left/right")[0].train}
    points = points_in(folder)
    tested = points[points["subset"].isin(STRATA_OF_TESTS)]
    names = zip(tested["subset"].map(STRATA_OF_TESTS), ~tested["animals"].isin(shown), strict=True)
    return {scene: f"{n}: {PAIRS[other]}" for scene, (n, other) in zip(tested["scene"], names, strict=True)}


def stratum_changes(points: pd.DataFrame) -> Iterator[tuple[str, str, Estimate]]:
    """Yield the changes of accuracy with the stratum: of each model, and of all models together."""
    models = {**dict(list(points.groupby("model", sort=False))), ALL_MODELS: points}
    for model, its in models.items():
        parts = [its[its["subset"] == group] for group in GROUPS]
        for name, weights in CHANGES.items():
            halves = np.repeat(weights, len(PAIRS)) / len(PAIRS)
            yield model, name, contrast(parts, partial(np.dot, b=halves), signed=True) or NOTHING


def rank_correlation(points: pd.DataFrame, *strata: str) -> Estimate:
    """Estimate Spearman's rank correlation of the models' accuracies in two strata.

    Noise lowers a rank correlation: that of the models drawn, and that of each draw from the records still more. Of
    percentiles of the draws and of these mirrored at the measured value (basic bootstrap) the interval takes the wider
    end at each side. There is none where noise may explain how models differ in a stratum, as at chance. In
    simulations of 6 to 10 models at most 2 of 100 intervals were below 0.8 though the truth wasn't;
    without this refusal up to 64 were.
    """
    models = list(dict.fromkeys(points["model"]))
    named = product(strata, models, PAIRS)
    parts = [points[(points["subset"] == f"{s}: {pairs}") & (points["model"] == m)] for s, m, pairs in named]
    if not (common := set.intersection(*(set(part["seed"]) for part in parts))):
        return NOTHING
    parts = [part[part["seed"].isin(common)] for part in parts]
    sums, counts, *names = clusters(parts)
    sides = stratum_means((sums.sum(0) / counts.sum(0))[None])
    value, low, high = float(correlate_ranks(*sides)[0]), math.nan, math.nan
    if has_interval(counts, *names).all():
        drawn = stratum_means(resampled_means(sums, counts, *names))
        if all(share_without_noise(*both) >= LEAST_SIGNAL for both in zip(sides, drawn, strict=True)):
            ends = np.nanquantile(correlate_ranks(*drawn), (0.025, 0.975))
            low, high = max(-1.0, min(ends[0], 2 * value - ends[1])), min(1.0, max(ends[1], 2 * value - ends[0]))
    few = min(part["animals"].nunique() for part in parts)
    return Estimate(value, low, high, len(models), few, len(common), math.nan, signed=True, times=1, digits=2)


def stratum_means(means: Float64[np.ndarray, "draws groups"]) -> list[Scores]:
    """Return the models' means in each of two strata."""
    return np.split(means.reshape(len(means), -1, len(PAIRS)).mean(2), 2, axis=1)


def share_without_noise(means: Float64[np.ndarray, "1 models"], drawn: Scores) -> float:
    """Return the share of the variance between models' means (one row) that their draws don't explain; what all models
    share in a draw doesn't count."""
    means, drawn = (rows - rows.mean(1, keepdims=True) for rows in (means, drawn))
    spread = float(means.var(ddof=1))
    return 1 - float(drawn.var(axis=0).mean()) / spread if spread else 0.0


def correlate_ranks(one: Scores, other: Scores) -> Float64[np.ndarray, " draws"]:
    """Return Spearman's rank correlation of two models' scores in each draw; nan where all of one side are equal."""
    ranks = [np.sign(x[:, :, None] - x[:, None, :]).sum(2) for x in (one, other)]
    products, *squares = [(a * b).sum(1) for a, b in (ranks, ranks[:1] * 2, ranks[1:] * 2)]
    norm = np.sqrt(squares[0] * squares[1])
    return np.divide(products, norm, out=np.full(len(norm), math.nan), where=norm > 0)


SAYS = """Accuracy (%) on swaps by how many of the two combinations of animal and texture training never shows, in the
scene or in its swap, whichever has more, and by whether training shows their pair of animals. 0, pairs of training:
in other textures."""
CHANGES_SAY = """Points by which accuracy changes with the stratum, of which pairs of training count one half and other
pairs the other; the slope is for each unseen combination. All models: the mean of these models' records; the interval
isn't for other models."""
ORDERS_SAY = """Do models keep their order? Spearman's rank correlation of their accuracies in two strata. Noise lowers
it, which the interval allows for. There is none where noise may explain how models differ in a stratum, as at
chance."""

"""Strata of swaps by how many compositions training never showed, in a scene or in its swap, whichever has more: what
each unseen one costs a model, and whether models keep their order.

Stratum 0 has the tests whose scenes share neither arrangement nor bag of words with training, of seen and of unseen
pairs, as the tests of unseen compositions have both.
"""

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float64

from menagerie.generators.splits.binding import COMPOSITION_TESTS
from menagerie.studies.analysis.intervals import Estimate, has_interval, resampled_means
from menagerie.studies.frame.estimate import clusters, points_in, weigh_groups
from menagerie.studies.frame.parts import EstimateTable, Heading, Part, Table
from menagerie.studies.frame.records import Records

STRATA_OF_TESTS = {"different_bag": "0", "unseen_pairs": "0"} | {t: str(n) for t, n in COMPOSITION_TESTS.items()}
UNSEEN = ("0", "1", "2")
CHANGES = {"slope": (-0.5, 0.0, 0.5), "0 to 1": (-1.0, 1.0, 0.0), "1 to 2": (0.0, -1.0, 1.0)}
"""Weights of the means of the strata. The slope is that of least squares."""
ALL = "all models"
FEWEST_MODELS = 6  # with fewer, their order says little
Scores = Float64[np.ndarray, "draws models"]


def stratum_parts(swaps: Records) -> Iterator[Part]:
    """Yield accuracy by stratum, its changes and the rank correlations of models; nothing without these tests."""
    if not COMPOSITION_TESTS.keys() <= {*swaps.tests}:
        return
    strata = swaps.where(subset=tuple(STRATA_OF_TESTS)).regroup(UNSEEN, lambda arm: strata_of(swaps.folder(arm)))
    points = strata.points
    if {*UNSEEN} <= {*points.get("subset", ())}:
        yield Heading("By unseen compositions", SAYS)
        yield Table("strata", strata, ("model",), intervals=True)
        changes = {(model, name): its for model, name, its in stratum_changes(points)}
        yield EstimateTable("strata-changes", ("model", "change"), changes, says=CHANGES_SAY)
        if points["model"].nunique() >= FEWEST_MODELS:
            orders = {both: rank_correlation(points, *both) for both in combinations(UNSEEN, 2)}
            yield EstimateTable("strata-orders", ("stratum", "other"), orders, says=ORDERS_SAY)


@cache  # finished runs don't change
def strata_of(folder: Path) -> dict[str, str]:
    """Return the stratum of each scene of a run's tests of `STRATA_OF_TESTS`."""
    points = points_in(folder)
    tested = points[points["subset"].isin(STRATA_OF_TESTS)]
    return dict(zip(tested["scene"], tested["subset"].map(STRATA_OF_TESTS), strict=True))


def stratum_changes(points: pd.DataFrame) -> Iterator[tuple[str, str, Estimate]]:
    """Yield the changes of accuracy with the stratum: of each model, and of all models together."""
    models = {**dict(list(points.groupby("model", sort=False))), ALL: points}
    for model, its in models.items():
        parts = [its[its["subset"] == stratum] for stratum in UNSEEN]
        yield from ((model, name, weigh_groups(parts, weights)) for name, weights in CHANGES.items())


def rank_correlation(points: pd.DataFrame, *strata: str) -> Estimate:
    """Estimate Spearman's rank correlation of the models' accuracies in two strata.

    Noise lowers a rank correlation: that of the models drawn, and that of each draw from the records still more. Of
    percentiles of the draws and of these mirrored at the measured value (basic bootstrap) the interval takes the wider
    end at each side. In simulations of 6 to 10 models it covers the truth in 90 to 99 of 100, either alone in 0 to 98.
    """
    models = list(dict.fromkeys(points["model"]))
    parts = [points[(points["subset"] == s) & (points["model"] == model)] for s in strata for model in models]
    sums, counts, *names = clusters(parts)
    value = float(correlate_ranks(*np.split((sums.sum(0) / counts.sum(0))[None], 2, axis=1))[0])
    low = high = math.nan
    if has_interval(counts, *names).all():
        drawn = correlate_ranks(*np.split(resampled_means(sums, counts, *names), 2, axis=1))
        ends = np.nanquantile(drawn, (0.025, 0.975))
        low, high = min(ends[0], 2 * value - ends[1]), max(ends[1], 2 * value - ends[0])
    few = min(part["animals"].nunique() for part in parts)
    return Estimate(
        value, max(low, -1.0), min(high, 1.0), len(models), few, points["seed"].nunique(), math.nan, True, 1, 2
    )


def correlate_ranks(one: Scores, other: Scores) -> Float64[np.ndarray, " draws"]:
    """Return Spearman's rank correlation of two models' scores in each draw; nan where all of one side are equal."""
    ranks = [np.sign(x[:, :, None] - x[:, None, :]).sum(2) for x in (one, other)]
    products, *squares = [(a * b).sum(1) for a, b in (ranks, ranks[:1] * 2, ranks[1:] * 2)]
    norm = np.sqrt(squares[0] * squares[1])
    return np.divide(products, norm, out=np.full(len(norm), math.nan), where=norm > 0)


SAYS = """Accuracy (%) on swaps by how many of the two combinations of animal and texture training never shows, in the
scene or in its swap, whichever has more. 0: other textures of pairs of training, and unseen pairs."""
CHANGES_SAY = "Points by which accuracy changes with the stratum; the slope is for each unseen combination."
ORDERS_SAY = """Do models keep their order? Spearman's rank correlation of their accuracies in two strata. Noise lowers
it, which the interval allows for; where a stratum is at chance for all, it says nothing."""

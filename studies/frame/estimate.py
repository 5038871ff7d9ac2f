"""Estimates from groups of records: means, paired differences and statistics of curves, with intervals for new seeds
and new animal pairs.

A record is an image of a test with a true and a false caption. Its value is 1 if the model prefers the true one, one
half for a tie, else 0. Intervals are those of `intervals`.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64

from menagerie.envs.core.errors import UserError, choose
from menagerie.studies.analysis.errors import COUNTERFACTUAL, SCORES, read_predictions
from menagerie.studies.analysis.intervals import NOTHING, Estimate, Statistic, accuracy_intervals, statistic_interval
from menagerie.studies.analysis.power import deviations_of, planned_clusters, smallest_decided
from menagerie.studies.analysis.tables import DASH

CLUSTER = ("seed", "subset", "task", "animals")
KEY = ("seed", "subset", "task", "scene", "caption")
"""Columns that identify a record of an arm."""
Key = tuple[Any, ...]
Groups = Mapping[Key, pd.DataFrame]


def estimate_or_dash(its: Estimate | None) -> str:
    return str(its or DASH)


@cache  # finished cells don't change, and reports are rewritten after every run
def points_in(folder: Path) -> pd.DataFrame:
    """The records of a finished cell: subset, task, scene, caption, animals and `value`."""
    return read_predictions(folder)[["subset", "task", "scene", "caption", "animals", "value"]]


@cache
def four_way_scores(folder: Path, part: str) -> pd.DataFrame:
    """The records of `points_in` with a counterfactual image. `value` is 1 if the four-way item is right by its "text",
    "image" or "group" score, else 0; a tie is wrong."""
    records = read_predictions(folder, counterfactuals=True).dropna(subset=COUNTERFACTUAL)
    own, own_false, counterfactual_false, counterfactual = (records[name] for name in (*SCORES, *COUNTERFACTUAL))
    text = (own > own_false) & (counterfactual > counterfactual_false)
    image = (own > counterfactual_false) & (counterfactual > own_false)
    right = {"text": text, "image": image, "group": text & image}
    columns = ["subset", "task", "scene", "caption", "animals"]
    return records[columns].assign(value=right[choose("score", part, right)].astype(float))


def estimates(
    points: pd.DataFrame,
    by: Sequence[str],
    against: Mapping[str, Any] | None = None,
    statistic: tuple[str, Statistic] | None = None,
    seeds: int = 0,
) -> dict[Key, Estimate]:
    """Compute `Records.estimates` from a table of records. A statistic of groups without a common seed is left out."""
    groups: Groups = {key: part for key, part in points.groupby(list(by), sort=False)}
    if against is not None:
        groups = {key: part for key in groups if (part := pair_records(groups, by, key, against)) is not None}
    if statistic is None:
        return {key: estimate(part, against is not None, seeds) for key, part in groups.items()}
    label, function = by.index(statistic[0]), statistic[1]
    rest: dict[Key, list[pd.DataFrame]] = {}
    for key, part in groups.items():
        rest.setdefault(key[:label] + key[label + 1 :], []).append(part)
    return {key: its for key, parts in rest.items() if (its := curve_estimate(parts, function)) is not None}


def pair_records(groups: Groups, by: Sequence[str], key: Key, against: Mapping[str, Any]) -> pd.DataFrame | None:
    """Subtract from a group's records those of the group that it is compared with, over the animal pairs (of a seed,
    subset and task) that both have. None for that group itself, and without common pairs.

    If not all records match, each gets the mean difference of its animal pair. Raises `UserError` for a record that
    occurs twice.
    """
    other = tuple(against.get(name, value) for name, value in zip(by, key, strict=True))
    if other == key or other not in groups:
        return None
    for one in (other, key):
        if (part := groups[one]).duplicated(list(KEY)).any():
            varied = [name for name in part if name not in {*KEY, *by, "animals", "value"} and part[name].nunique() > 1]
            raise UserError(f"records of {one} occur several times; add to `by`, or narrow by `where`, one of {varied}")
    of_pairs = [groups[one].groupby(list(CLUSTER), sort=False)["value"].agg(["sum", "count"]) for one in (other, key)]
    pairs = of_pairs[1].join(of_pairs[0].add_suffix("_before"), how="inner")
    before, after = (groups[one].merge(pairs, left_on=list(CLUSTER), right_index=True) for one in (other, key))
    both = after.merge(before[[*KEY, "value"]], on=list(KEY), suffixes=("", "_before"))
    if len(both) == len(before) == len(after):
        return both.assign(value=both["value"] - both["value_before"]) if len(both) else None
    gained = after["sum"] - after["sum_before"] * (after["count"] / after["count_before"])
    return after.assign(value=gained / after["count"])


def estimate(part: pd.DataFrame, signed: bool = False, planned: int = 0) -> Estimate:
    """Estimate the mean of some records, an accuracy or (`signed`) a difference. `decides` is that of as many seeds as
    are `planned`; 0: as there are."""
    sums, counts, seeds, pairs = clusters([part])
    low, high, decides = interval(sums.tobytes(), counts.tobytes(), tuple(seeds), tuple(pairs), signed, planned)
    of_seeds = part.groupby("seed", sort=False)["value"].mean()
    numbers = (len(part), len({*pairs}), len(of_seeds), float(of_seeds.std()))
    return Estimate(float(sums.sum() / counts.sum()), low, high, *numbers, signed, decides=decides)


@lru_cache(maxsize=10_000)  # pages need the same groups several times, and are drawn after every run
def interval(
    sums: bytes, counts: bytes, seeds: tuple[Hashable, ...], pairs: tuple[Hashable, ...], signed: bool, planned: int = 0
) -> tuple[float, float, float]:
    """Compute the interval of a group from the sums and numbers of its clusters' records, as bytes of arrays; and, if
    it is `signed`, the smallest difference that such studies decide."""
    table = [np.frombuffer(each, float)[:, None] for each in (sums, counts)]
    if signed:
        low, high = statistic_interval(lambda means: means[:, 0].clip(-1, 1), *table, seeds, pairs)
        values, number = (table[0] / table[1])[:, 0], table[1][:, 0]
        chosen, *names = planned_clusters(seeds, pairs, planned)
        return low, high, smallest_decided(deviations_of(values, seeds, pairs), number[chosen], *names)
    low, high = accuracy_intervals(*table, seeds, pairs)
    return float(low[0]), float(high[0]), math.nan


def curve_estimate(parts: Sequence[pd.DataFrame], function: Statistic) -> Estimate | None:
    """Estimate a statistic of the means of several groups, over the seeds that all have; None if there is none."""
    common = set.intersection(*(set(part["seed"]) for part in parts))
    if not common:
        return None
    parts = [part[part["seed"].isin(common)] for part in parts]
    sums, counts, seeds, pairs = clusters(parts)
    value = float(function((sums.sum(0) / counts.sum(0))[None])[0])
    of_seeds = np.column_stack([part.groupby("seed")["value"].mean() for part in parts])
    each = function(of_seeds)
    deviation = float(np.std(each, ddof=1)) if len(each) > 1 else math.nan
    fewest = min(part["animals"].nunique() for part in parts)
    low, high = statistic_interval(function, sums, counts, seeds, pairs)
    return Estimate(value, low, high, sum(map(len, parts)), fewest, len(each), deviation)


def clusters(
    parts: Sequence[pd.DataFrame],
) -> tuple[Float64[np.ndarray, "clusters groups"], Float64[np.ndarray, "clusters groups"], list[Any], list[Any]]:
    """Sum and count records by animal pair of a seed (rows) and group; returns the seed and pair of each row too."""
    summed = [part.groupby(["seed", "animals"])["value"].agg(["sum", "count"]) for part in parts]
    both = pd.concat(summed, axis=1, keys=range(len(parts))).fillna(0.0).sort_index()
    sums, counts = (both.xs(name, axis=1, level=1).to_numpy(float) for name in ("sum", "count"))
    return sums, counts, *(both.index.get_level_values(name).tolist() for name in ("seed", "animals"))


def without_records(scores: pd.DataFrame, by: Sequence[str]) -> dict[Key, Estimate]:
    """Estimate the means of groups of `scores` whose records aren't kept, such as four-way items, weighted by `n`."""
    scores, found = scores.dropna(subset="accuracy"), {}
    for key, part in scores.assign(right=scores["accuracy"] * scores["n"]).groupby(list(by), sort=False):
        sums = part.groupby("seed", sort=False)[["right", "n"]].sum()
        n, of_seeds = int(part["n"].sum()), sums["right"] / sums["n"]
        value = float(part["right"].sum() / n)
        found[key] = Estimate(value, math.nan, math.nan, n, 0, len(of_seeds), float(of_seeds.std()))
    return found


def compare_groups(first: pd.DataFrame, second: pd.DataFrame) -> tuple[Estimate, Estimate, Estimate]:
    """Estimate the means of two groups whose records can't be paired, and the second minus the first."""
    return *(estimate(part) if len(part) else NOTHING for part in (first, second)), group_gap(first, second)


def group_gap(first: pd.DataFrame, second: pd.DataFrame) -> Estimate:
    """Estimate the second mean minus the first, over the seeds that both have; `NOTHING` without one."""
    its = curve_estimate([first, second], rise) if len(first) and len(second) else None
    return NOTHING if its is None else its._replace(signed=True)


def rise(means: Float64[np.ndarray, "rows 2"]) -> Float64[np.ndarray, " rows"]:
    return (means[:, 1] - means[:, 0]).clip(-1, 1)


def contrast(parts: Sequence[pd.DataFrame], function: Statistic, signed: bool = False) -> Estimate | None:
    """Return a statistic of the means of groups, over common seeds; None if a group or a common seed is missing."""
    its = curve_estimate(parts, function) if all(map(len, parts)) else None
    return its and its._replace(signed=signed)

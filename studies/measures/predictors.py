"""Whether measures of a run's embeddings predict its accuracy on unseen pairs: rank correlations with intervals, over
all runs of a study and within groups of them; p values for several tests."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, permutations, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int, Num

from menagerie.studies.analysis.intervals import CONFIDENCE, FEWEST, RESAMPLES, Estimate
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.probe_set import BOTH, IMAGE, TEXT, seed_means
from menagerie.studies.runs.data import FRACTIONS

ACCURACY = "unseen_pairs"
TEST = ("unseen_pairs", "swap")
UNSEEN = (ACCURACY, "one_unseen_composition", "two_unseen_compositions")
PLACE = (*FRACTIONS, "negated", "compositions")
MOST = 0.9999  # Fisher's transform of a perfect correlation is infinite
ONE_DEVIATION = (0.1587, 0.8413)  # the quantiles of a normal distribution one deviation from its mean
ARRANGEMENTS = 5040  # up to so many permutations, those of seven clusters, are all evaluated
Columns = Float64[np.ndarray, "draws n"]


class Predictor(NamedTuple):
    """A measure by which accuracy on unseen pairs is predicted."""

    name: str
    part: str
    measure: str
    sign: int
    """Sign of the correlation that is expected: 1 or -1."""


NAMED = Predictor("binding share of the text's embedding", TEXT, "share", 1)
NEXT = (  # those that came second to fourth after `NAMED` on the cells on which it was chosen
    Predictor("gap between images and texts", BOTH, "gap", -1),
    Predictor("swaps right after one matrix", BOTH, "after", 1),
    Predictor("cos of what a swap changes in image and text", BOTH, "cosine", 1),
)


OF_PAPERS = tuple(  # named beforehand by Uselis et al. (2602.24264), and for products by 2605.31503
    Predictor(f"{part}: {name}", part, measure, sign)
    for part in (IMAGE, TEXT)
    for name, measure, sign in (
        ("R2 of linear factors", "factor_fit", 1),
        ("|cos| of animals' and textures' factors", "factor_cosine", -1),
        ("components of factors", "factor_components", -1),
        ("R2 of products minus that of sums", "product_gain", 1),
    )
)


class TestedPredictor(NamedTuple):
    """How a predictor's ranks correlate with those of accuracy on unseen pairs."""

    predictor: Predictor
    over_all: Estimate
    by_place: Estimate
    """Within a place of the grid."""
    by_model: Estimate
    """Within a place and a model, over its seeds."""
    p: float
    """p over all cells; for the measures in `NEXT` it is corrected for their number (Holm)."""
    outcome: str


def measures_chosen_on(world: str, resolution: int, cell: Mapping[str, Any]) -> bool:
    """Return whether the measures were chosen on a cell, among others: on CLIP and OC-CLIP in the world `pug` at 64
    pixels, with five seeds at one place of the grid and with one at three others."""
    if (world, resolution) != ("pug", 64) or cell["model"] not in ("clip", "oc-clip"):
        return False
    seeds = {(0.2, 0.0): 5, (0.2, 1.0): 1, (0.8, 0.0): 1, (0.8, 1.0): 1}
    return cell["seed"] < seeds.get(tuple(cell[name] for name in FRACTIONS), 0)


def cells_with_predictors(
    records: Records, measured: pd.DataFrame, predictors: Sequence[Predictor] = (NAMED, *NEXT), test: str = ACCURACY
) -> pd.DataFrame:
    """Return a row for each finished cell with all predictors: labels, predictors, and accuracy on a test's swaps."""
    scores = records.where(test=((test, "swap"),)).scores
    if not len(scores) or not len(measured):
        return pd.DataFrame(columns=[*PLACE, "model", "seed", ACCURACY, *(its.name for its in predictors)])
    labels = ["model", "seed", *setting_names(scores)]
    found = scores[[*labels, "accuracy"]].rename(columns={"accuracy": ACCURACY}).dropna()
    for its in predictors:
        chosen = measured[(measured["part"] == its.part) & (measured["measure"] == its.measure)]
        found = found.merge(chosen[[*labels, "value"]].rename(columns={"value": its.name}), on=labels)
    return found.dropna().reset_index(drop=True)


def predictor_rows(records: Records, measured: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield rows (predictor, expected, test, over, value, low, high, p, runs, seeds) for what papers name: rank
    correlations with accuracy on each test of unseen scenes, over all runs, within a setting, and over the runs of each
    model, where there is one: a single run has none. Runs of a model with a seed are drawn together. Over one model's
    runs whatever follows the setting is correlated."""
    for its, test in product(OF_PAPERS, UNSEEN):
        cells = cells_with_predictors(records, measured, (its,), test)
        runs, places = (list(map(tuple, cells[by].to_numpy())) for by in (["model", "seed"], setting_names(cells)))
        every = [("all runs", cells, runs, ()), ("within a setting", cells, runs, places)]
        every += [(str(model), own, own["seed"].tolist(), ()) for model, own in cells.groupby("model", sort=False)]
        for over, own, clusters, groups in every:
            x, y = (own[name].to_numpy(float) for name in (its.name, ACCURACY))
            if len(own) and pd.notna((found := correlation(x, y, clusters, groups)).value):
                row = {"predictor": its.name, "expected": its.sign, "test": test, "over": over}
                row |= {name: getattr(found, name) for name in ("value", "low", "high", "p")}
                yield row | {"runs": len(own), "seeds": own["seed"].nunique()}


def setting_names(cells: pd.DataFrame) -> list[str]:
    return [name for name in PLACE if name in cells]


FITS = ("sum_fit", "product_fit", "product_gain")
RISE = "greatest minus least"


def coverage_rows(measured: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield rows (model, part, measure, coverage, value, low, high, seeds): R2 of sums and of products, and their
    difference, at each coverage; RISE is that at the greatest minus that at the least, of the same seeds. Means over
    seeds, other settings pooled, with Student's interval."""
    fits = measured[measured["measure"].isin(FITS)].dropna(subset="value")
    if "compositions" not in fits or fits["compositions"].nunique() < 2:
        return
    by = ["model", "part", "measure"]
    rise = fits.groupby([*by, "seed", "compositions"], sort=False)["value"].mean().unstack("compositions")
    change = (rise[max(rise)] - rise[min(rise)]).dropna().rename("value").reset_index().assign(coverage=RISE)
    fits = fits.sort_values("compositions", kind="stable")
    fits = fits.assign(coverage=fits["compositions"].map("{:g}".format))
    for key, its in seed_means(pd.concat([fits, change]), [*by, "coverage"], -np.inf, np.inf).items():
        numbers = {name: getattr(its, name) for name in ("value", "low", "high", "seeds")}
        yield dict(zip([*by, "coverage"], key, strict=True)) | numbers


def correlate_predictors(cells: pd.DataFrame) -> list[TestedPredictor]:
    """Return the tests of `NAMED` and of `NEXT`. The bootstrap draws a model's cells with the same seed together."""
    places = list(map(tuple, cells[setting_names(cells)].itertuples(index=False)))
    runs = list(zip(cells["model"], cells["seed"], strict=True))
    groups = ((), places, list(zip(places, cells["model"], strict=True)))
    accuracy, every = cells[ACCURACY].to_numpy(float), (NAMED, *NEXT)
    found = [[correlation(cells[its.name].to_numpy(float), accuracy, runs, of) for of in groups] for its in every]
    p = [found[0][0].p, *holm([its[0].p for its in found[1:]])]
    return [
        TestedPredictor(its, *three, value, correlation_outcome(three[0], its.sign, value))
        for its, three, value in zip(every, found, p, strict=True)
    ]


def correlation(
    x: Num[np.ndarray, " n"],
    y: Num[np.ndarray, " n"],
    clusters: Sequence[Any],
    groups: Sequence[Any] = (),
    seed: int = 0,
) -> Estimate:
    """Return Spearman's rank correlation of x and y, with a bootstrap that draws whole clusters. Without a spread, as a
    perfect one, it has p but no interval; with too few clusters, or if it is undefined, it has neither. With groups,
    ranks are taken within each group, centred there and pooled, so that differences between groups don't count."""
    own = as_indices(groups) if len(groups) else np.zeros(len(x), int)
    number = as_indices(clusters)
    kinds = int(number.max()) + 1 if len(x) else 0
    value = float(spearman(x, y, np.ones((1, len(x))), own)[0]) if len(x) else np.nan
    low = high = p = np.nan
    if kinds >= FEWEST and np.isfinite(value):
        drawn = np.random.default_rng(seed).multinomial(kinds, [1 / kinds] * kinds, RESAMPLES)
        low, high, p = student_interval(value, spearman(x, y, drawn[:, number].astype(float), own), kinds)
        if np.isnan(p):
            low, high, p = value, value, permutation_p(x, y, number, own, seed)
    return Estimate(value, low, high, len(x), None, kinds, np.nan, signed=True, times=1, digits=2, p=p)


def student_interval(value: float, drawn: Float64[np.ndarray, " draws"], clusters: int) -> tuple[float, float, float]:
    """Return interval and p by Student's t on Fisher's scale; NaN if draws have no spread."""
    from scipy.stats import t

    centre, *others = np.arctanh(np.clip([value, *drawn[np.isfinite(drawn)]], -MOST, MOST))
    # From quantiles, because draws of two or three different clusters may be perfectly correlated.
    spread = float(np.diff(np.quantile(others, ONE_DEVIATION))[0]) / 2 * np.sqrt(clusters / (clusters - 1))
    if not spread:
        return np.nan, np.nan, np.nan
    half = float(t.ppf((1 + CONFIDENCE) / 2, clusters - 1)) * spread
    low, high = (float(np.tanh(centre + sign * half)) for sign in (-1, 1))
    return low, high, float(2 * t.sf(abs(centre) / spread, clusters - 1))


def permutation_p(
    x: Num[np.ndarray, " n"],
    y: Num[np.ndarray, " n"],
    clusters: Int[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"],
    seed: int,
) -> float:
    """Return the two-sided p of a permutation test, in which whole clusters exchange their y with others that have as
    many rows in the same groups: over all permutations if they are few, else over `RESAMPLES` random ones."""
    alike = defaultdict(list)
    for cluster in range(clusters.max() + 1):
        rows = np.flatnonzero(clusters == cluster)
        alike[tuple(groups[rows])].append(rows)
    if math.prod(math.factorial(len(its)) for its in alike.values()) <= ARRANGEMENTS:
        arranged = product(*map(permutations, alike.values()))
    else:
        rng = np.random.default_rng(seed)
        drawn = ([rng.permutation(its) for its in alike.values()] for _ in range(RESAMPLES))
        arranged = chain([alike.values()], drawn)
    orders = np.array([np.concatenate([rows for its in each for rows in its]) for each in arranged])
    one, other = (centred_ranks(values, np.ones((1, len(y))), groups)[0] for values in (x, y))
    products = np.abs(other[orders] @ one[orders[0]])  # the first one is the measured one
    return float(np.mean(products >= products[0] - 1e-9))


def as_indices(names: Sequence[Any]) -> Int[np.ndarray, " n"]:
    known = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], int)


def spearman(
    x: Num[np.ndarray, " n"], y: Num[np.ndarray, " n"], weights: Columns, groups: Int[np.ndarray, " n"]
) -> Float64[np.ndarray, " draws"]:
    """Return the rank correlation of each draw, in which row i occurs weights[:, i] times."""
    one, other = (centred_ranks(values, weights, groups) for values in (x, y))
    both, *squares = [(weights * a * b).sum(1) for a, b in ((one, other), (one, one), (other, other))]
    norm = np.sqrt(np.maximum(squares[0] * squares[1], 0))
    scale = np.maximum(weights.sum(1), 1)
    return np.divide(both, norm, out=np.full(len(norm), np.nan), where=norm > 1e-9 * scale)


def centred_ranks(values: Num[np.ndarray, " n"], weights: Columns, groups: Int[np.ndarray, " n"]) -> Columns:
    """Return ranks within groups, minus the mean of their group; tied values get their mean rank."""
    same = (groups[:, None] == groups).astype(float)
    ranks = weights @ (((values[:, None] < values) + 0.5 * (values[:, None] == values)) * same)
    return ranks - ((weights * ranks) @ same) / np.maximum(weights @ same, 1)


def holm(p: Sequence[float]) -> list[float]:
    """Return p values corrected for their number m (Holm 1979). In rising order they are multiplied by m, m - 1, ...;
    none falls below the one before it or exceeds 1. NaN stays NaN and isn't counted."""
    found = np.array(p, float)
    order = np.argsort(found, kind="stable")[: np.count_nonzero(~np.isnan(found))]  # NaN are last
    found[order] = np.minimum(np.maximum.accumulate(found[order] * np.arange(len(order), 0, -1)), 1.0)
    return found.tolist()


def correlation_outcome(its: Estimate, sign: int, p: float, level: float = 0.05) -> str:
    """Return the verdict: "confirmed" or "contradicted" if p is below the level, else "undecided"."""
    if np.isnan(p) or p >= level:
        return "undecided"
    return "confirmed" if its.value * sign > 0 else "contradicted"

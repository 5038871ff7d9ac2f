"""Where a form of the score begins to bind: a logistic curve through the accuracies of runs, and where it is half-way.

Accuracies are per pair of objects: the accuracy on all exchanges within n objects to the power 2 / n, so that chance is
1/2 and the line means the same for every number of objects. They are counted from chance: u = 2 accuracy - 1. Of a form
of the score, u is

    seen(objects, completeness) * sigmoid(a + b * coverage + c * completeness + d * log2(objects / 2)),

where `seen` is the mean u on *seen* compositions, so that what training left unlearnt isn't called unbound; its
standard error is a part of all intervals. Each form has its own a, b, c, d. The line is u = 1/2. Means of cells (the
runs at one place) differ from the curve by the deviation between seeds, estimated from all cells with several, and by a
misfit, estimated from what is left. Both shift the curve along coverage, so that they are widest where it is steepest:
they grow with 4 u (1 - u), which is 1 at the line. Beside them there is the deviation of a test's few scenes. Runs must
be independent: no two cells of a form may share a split.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped
from scipy.optimize import least_squares
from scipy.special import expit, logit

PLACE = ["model", "objects", "coverage", "completeness"]
CONDITION = ["model", "objects", "completeness"]
LINE = 0.5
Z = 1.959964  # 95 % of a normal distribution
PRIOR = 3.0  # deviation of a, b, c and d beforehand: wide, but a few runs that are all right give no infinite slope
SEED_DEVIATION = 0.14  # of u at the line, where no cell has two seeds: 7 points of accuracy on swaps
DRAWS = 4000
Values = Float[np.ndarray, " n"]
Column = pd.Series | Shaped[np.ndarray, " n"] | float | int
"""A number for each row, or one for all."""


@dataclass(frozen=True, eq=False)
class Boundary:
    """A fitted curve."""

    runs: pd.DataFrame
    """The fitted runs: a row each with `PLACE`, seed, and accuracies per pair on `seen` and on `unseen` compositions;
    for `lines` on training's scenes too (`learnt`)."""
    scenes: int = 400
    """Number of scenes in each test."""
    only_coverage: bool = False
    """Whether coverage alone decides, for all forms, objects and captions alike: what the curve is compared with."""

    @cached_property
    def forms(self) -> list[str]:
        return [] if self.only_coverage else sorted(self.runs["model"].unique())

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row for each cell: mean u on seen and unseen compositions, and the number of runs."""
        grouped = self.runs.assign(**{name: 2 * self.runs[name] - 1 for name in ("seen", "unseen")}).groupby(PLACE)
        return grouped.agg(seen=("seen", "mean"), unseen=("unseen", "mean"), runs=("seed", "size")).reset_index()

    @cached_property
    def levels(self) -> pd.DataFrame:
        """A row for each condition (form, objects, completeness): the mean u of its cells on seen compositions, and the
        standard `error` of that, by the variance of cells, one for all conditions of a form."""
        found = self.cells.groupby(CONDITION)["seen"].agg(["mean", "var", "size"]).reset_index()
        found["free"] = found["size"] - 1
        found["squares"] = found["var"].fillna(0) * found["free"]
        of_form = found.groupby("model")[["squares", "free"]].transform("sum")
        variance = (of_form["squares"] / of_form["free"].where(of_form["free"] > 0)).fillna(SEED_DEVIATION**2)
        return found[CONDITION].assign(seen=found["mean"], error=np.sqrt(variance / found["size"]))

    @cached_property
    def lines(self) -> pd.DataFrame:
        """A row for each condition: its line (`critical`), the mean accuracy on training's scenes, and the number of
        runs."""
        grouped = self.runs.groupby(CONDITION, sort=False)
        return self.critical(grouped.agg(learnt=("learnt", "mean"), runs=("seed", "size")).reset_index())

    @cached_property
    def seed_variance_at_line(self) -> float:
        """The variance of u between seeds of a cell at the line, beyond that of scenes."""
        u = 2 * self.runs["unseen"] - 1
        grouped = u.groupby([self.runs[name] for name in PLACE])
        free, steep = grouped.size() - 1, steepness(grouped.mean()) ** 2
        if not free.sum():
            return SEED_DEVIATION**2
        return max(0.0, float(((grouped.var().fillna(0) - 1 / self.scenes) * free).sum() / (steep * free).sum()))

    def seed_variance(self, u: Column, seeds: Column) -> Column:
        """Return the variance of the mean of a number of seeds about a cell whose mean is u. The scenes of a test give
        u a variance of about 1 / their number, as they do at chance."""
        return (1 / self.scenes + self.seed_variance_at_line * steepness(u) ** 2) / seeds

    @cached_property
    def fit(self) -> tuple[Values, Float[np.ndarray, "k k"], float]:
        """The coefficients, their covariance, and the variance of cells about the curve, at the line, beyond that of
        seeds."""
        rows, height, u, misfit = (
            self.design(self.cells),
            self.seen_level(self.cells)[0],
            self.cells["unseen"].to_numpy(),
            0.0,
        )
        found, seeds = np.zeros(rows.shape[1]), self.cells["runs"].to_numpy()
        for _ in range(5):
            curve = height * expit(rows @ found)
            steep, of_seeds = steepness(curve) ** 2, self.seed_variance(curve, seeds)
            scale = np.sqrt(misfit * steep + of_seeds)
            fitted = least_squares(lambda w: np.r_[(height * expit(rows @ w) - u) / scale, w / PRIOR], found)  # noqa: B023
            found, free = fitted.x, max(1, len(u) - len(fitted.x))
            left = np.sum((height * expit(rows @ found) - u) ** 2) * len(u) / free
            misfit = max(0.0, float((left - of_seeds.sum()) / steep.sum()))
        return found, np.linalg.inv(fitted.jac.T @ fitted.jac), misfit

    def design(self, cells: pd.DataFrame) -> Float[np.ndarray, "n k"]:
        """Return the rows by which coefficients are multiplied: four columns for each form."""
        columns = [np.ones(len(cells)), (cells["coverage"] - 0.5) / 0.25]
        if self.only_coverage:
            return np.stack(columns, 1)
        columns += [(cells["completeness"] - 0.8) / 0.2, np.log2(cells["objects"] / 2) - 0.5]
        block = np.stack(columns, 1)
        return np.hstack([block * (cells["model"] == form).to_numpy()[:, None] for form in self.forms])

    def seen_level(self, cells: pd.DataFrame) -> tuple[Values, Values]:
        """Return u on seen compositions at cells, and its standard error: `levels`, between values of completeness
        interpolated."""
        if self.only_coverage:
            return np.full(len(cells), max(self.cells["seen"].mean(), 0.05)), np.zeros(len(cells))
        level, error = (interpolated(self.levels, name, cells) for name in ("seen", "error"))
        return np.maximum(level, 0.05), error

    def curve(self, cells: pd.DataFrame) -> tuple[Values, Values]:
        """Return u at cells and its deviation: of the mean of many seeds."""
        weights, covariance, misfit = self.fit
        rows, (height, error) = self.design(cells), self.seen_level(cells)
        share = expit(rows @ weights)
        slope = (height * share * (1 - share))[:, None] * rows
        variance = np.einsum("ni,ij,nj->n", slope, covariance, slope) + (share * error) ** 2
        return height * share, np.sqrt(variance + misfit * steepness(height * share) ** 2)

    def predict(self, cells: pd.DataFrame, seeds: Column) -> pd.DataFrame:
        """Predict the mean accuracy per pair of a number of seeds at cells: columns predicted, low and high (95 %)."""
        mean, deviation = self.curve(cells)
        half = Z * np.sqrt(deviation**2 + self.seed_variance(mean, seeds))
        sides = {"predicted": mean, "low": mean - half, "high": np.minimum(mean + half, 1.0)}
        return cells.assign(**{name: (1 + u) / 2 for name, u in sides.items()})

    def critical(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the coverage at which a condition is at the line, for each row: columns critical, low and high (95 %),
        from draws of the coefficients, the level of seen compositions and the misfit, as `curve` has them; infinite
        where it never is, and minus infinity where it always is above."""
        weights, covariance, misfit = self.fit
        (level, error), random = self.seen_level(cells), np.random.default_rng(0)
        draws = random.multivariate_normal(weights, covariance, DRAWS)
        levels = level + error * random.standard_normal((DRAWS, len(cells)))
        lines = LINE + np.sqrt(misfit) * random.standard_normal((DRAWS, len(cells)))
        half, one_more = (self.design(cells.assign(coverage=share)) for share in (0.5, 0.75))
        cases = (weights, LINE, level), (draws, lines, levels)
        found = [crossing(w @ half.T, w @ (one_more - half).T, log_odds(line, seen)) for w, line, seen in cases]
        low, high = np.quantile(found[1], (0.025, 0.975), axis=0, method="closest_observation")
        return cells.assign(critical=found[0], low=low, high=high)


class Diagram(NamedTuple):
    """All runs, which of them are of held-out cells, how many such cells there are, with a run or without, the curve
    through the others, and its check (`held_out_checks`)."""

    runs: pd.DataFrame
    is_held: Shaped[np.ndarray, " n"]
    number_held: int
    fitted: Boundary
    checks: pd.DataFrame


def fit_diagram(runs: pd.DataFrame, held: Sequence[tuple[Any, ...]], scenes: int) -> Diagram | None:
    """Fit the runs outside of the cells `held` (`PLACE`), with tests of so many scenes; None if there are none."""
    is_held = pd.MultiIndex.from_frame(runs[PLACE]).isin(held)
    if is_held.all():
        return None
    fitted = Boundary(runs[~is_held], scenes)
    return Diagram(runs, is_held, len(held), fitted, held_out_checks(fitted, runs[is_held]))


def steepness(u: Column) -> Column:
    """Return 4 u (1 - u), how steep a logistic curve is at a height, 1 at the line."""
    inner = np.clip(u, 0.02, 0.98)
    return 4 * inner * (1 - inner)


def log_odds(line: np.ndarray | float, level: np.ndarray) -> np.ndarray:
    """Return the logit of line / level: infinite where the level isn't above the line."""
    return logit(np.clip(line / np.maximum(level, 1e-9), 1e-9, 1.0))


def crossing(start: np.ndarray, slope: np.ndarray, needed: np.ndarray) -> np.ndarray:
    """Return the coverage at which start + slope * (coverage - 0.5) / 0.25 is `needed`. If it doesn't rise: infinite,
    or minus infinity if it is above at coverage 0.5."""
    with np.errstate(divide="ignore", invalid="ignore"):
        never = np.where(start > needed, -np.inf, np.inf)
        return np.where((slope > 0) & np.isfinite(needed), 0.5 + 0.25 * (needed - start) / slope, never)


def interpolated(known: pd.DataFrame, column: str, cells: pd.DataFrame) -> Values:
    """Return the mean of a column over known rows with the form and objects of each of `cells`, linear between values
    of completeness; NaN where none has these."""
    means = known.groupby(CONDITION)[column].mean()
    found = np.full(len(cells), np.nan)
    for line, part in means.groupby(level=[0, 1]):
        here = (cells["model"] == line[0]) & (cells["objects"] == line[1])
        found[here] = np.interp(cells["completeness"][here], part.index.get_level_values(2), part)
    return found


def held_out_checks(fitted: Boundary, held: pd.DataFrame) -> pd.DataFrame:
    """Predict held-out cells from fitted runs: columns as `predict`, with the mean `measured` over their `seeds`,
    whether it is `inside`, and what `only_coverage` predicts. Cells without a fitted run of their form and number of
    objects are left out."""
    cells = held.groupby(PLACE).agg(measured=("unseen", "mean"), seeds=("seed", "size")).reset_index()
    cells = cells.merge(fitted.levels[["model", "objects"]].drop_duplicates())
    found, plain = (its.predict(cells, cells["seeds"]) for its in (fitted, replace(fitted, only_coverage=True)))
    inside = found["measured"].between(found["low"], found["high"])
    return found.assign(inside=inside, only_coverage=plain["predicted"])


def rmse(one: pd.Series, other: pd.Series) -> float:
    return float(np.sqrt(((one - other) ** 2).mean()))

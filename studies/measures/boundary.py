"""Where a form of the score begins to bind: a logistic curve through the accuracies of runs, and where it is half-way.

Accuracies are counted from chance: u = (accuracy - chance) / (1 - chance), 0 at chance, 1 where all is right, whatever
the number of captions to choose from. Of a form of the score, u is

    top(objects, completeness) * sigmoid(a + b * coverage + c * completeness + d * log2(objects / 2)),

where `top` is the mean u on *seen* compositions, so that what training left unlearnt isn't called unbound. Each form
has its own a, b, c, d. The line is u = 1/2. Means of cells (the runs at one place) differ from the curve by the
deviation between seeds, estimated from all cells with several, and by a misfit, estimated from what is left. Both shift
the curve along coverage, so that they are widest where it is steepest: they grow with 4 u (1 - u), which is 1 at the
line. Beside them there is the deviation of a test's few scenes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped
from scipy.optimize import least_squares
from scipy.special import expit, logit

PLACE = ["model", "objects", "coverage", "completeness"]
LINE = 0.5
Z = 1.959964  # 95 % of a normal distribution
PRIOR = 3.0  # deviation of a, b, c and d beforehand: wide, but a few runs that are all right give no infinite slope
SCENES = 0.05  # deviation of u that 400 scenes of a test have near chance, with two objects
NOISE = 0.14  # deviation of u between seeds, at the line, where no cell has two: 7 points of accuracy on swaps
DRAWS = 4000
Values = Float[np.ndarray, " n"]
Column = pd.Series | Shaped[np.ndarray, " n"] | float | int
"""A number for each row, or one for all."""


def from_chance(accuracy: pd.Series, objects: pd.Series) -> pd.Series:
    """Convert accuracies on all exchanges of objects in pairs to u."""
    chance = chance_of(objects)
    return (accuracy - chance) / (1 - chance)


def chance_of(objects: Column) -> Column:
    """Return the chance of finding the one true of 2^(objects / 2) captions."""
    return 0.5 ** (objects / 2)


@dataclass(frozen=True, eq=False)
class Boundary:
    """A fitted curve."""

    runs: pd.DataFrame
    """The fitted runs: a row each with `PLACE`, seed, and accuracies on `seen` and on `unseen` compositions."""
    alone: bool = False
    """Whether coverage alone decides, for all forms, objects and captions alike: what the curve is compared with."""

    @cached_property
    def forms(self) -> list[str]:
        return [] if self.alone else sorted(self.runs["model"].unique())

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row for each cell: mean u on seen and unseen compositions, and the number of runs."""
        u = {name: from_chance(self.runs[name], self.runs["objects"]) for name in ("seen", "unseen")}
        grouped = self.runs.assign(**u).groupby(PLACE)
        return grouped.agg(seen=("seen", "mean"), unseen=("unseen", "mean"), runs=("seed", "size")).reset_index()

    @cached_property
    def noise(self) -> float:
        """The variance of u between seeds of a cell at the line, beyond that of scenes."""
        u = from_chance(self.runs["unseen"], self.runs["objects"])
        grouped = u.groupby([self.runs[name] for name in PLACE])
        free, wide = grouped.size() - 1, steepness(grouped.mean()) ** 2
        if not free.sum():
            return NOISE**2
        return max(0.0, float(((grouped.var().fillna(0) - SCENES**2) * free).sum() / (wide * free).sum()))

    def seed_variance(self, u: Column, seeds: Column) -> Column:
        """Return the variance of the mean of a number of seeds about a cell whose mean is u."""
        return (SCENES**2 + self.noise * steepness(u) ** 2) / seeds

    @cached_property
    def fit(self) -> tuple[Values, Float[np.ndarray, "k k"], float]:
        """The coefficients, their covariance, and the variance of cells about the curve, at the line, beyond that of
        seeds."""
        rows, height, u, misfit = self.design(self.cells), self.top(self.cells), self.cells["unseen"].to_numpy(), 0.0
        found, seeds = np.zeros(rows.shape[1]), self.cells["runs"].to_numpy()
        for _ in range(5):
            curve = height * expit(rows @ found)
            wide, of_seeds = steepness(curve) ** 2, self.seed_variance(curve, seeds)
            scale = np.sqrt(misfit * wide + of_seeds)
            fitted = least_squares(lambda w: np.r_[(height * expit(rows @ w) - u) / scale, w / PRIOR], found)  # noqa: B023
            found, free = fitted.x, max(1, len(u) - len(fitted.x))
            left = np.sum((height * expit(rows @ found) - u) ** 2) * len(u) / free
            misfit = max(0.0, float((left - of_seeds.sum()) / wide.sum()))
        return found, np.linalg.inv(fitted.jac.T @ fitted.jac), misfit

    def design(self, cells: pd.DataFrame) -> Float[np.ndarray, "n k"]:
        """Return the rows by which coefficients are multiplied: four columns for each form."""
        columns = [np.ones(len(cells)), (cells["coverage"] - 0.5) / 0.25]
        if self.alone:
            return np.stack(columns, 1)
        columns += [(cells["completeness"] - 0.8) / 0.2, np.log2(cells["objects"] / 2) - 0.5]
        block = np.stack(columns, 1)
        return np.hstack([block * (cells["model"] == form).to_numpy()[:, None] for form in self.forms])

    def top(self, cells: pd.DataFrame) -> Values:
        """Return u on seen compositions at cells: the mean of runs with these objects, between values of completeness
        interpolated."""
        if self.alone:
            return np.full(len(cells), max(self.cells["seen"].mean(), 0.05))
        return np.maximum(interpolated(self.cells, "seen", cells), 0.05)

    def curve(self, cells: pd.DataFrame) -> tuple[Values, Values]:
        """Return u at cells and its deviation: of the mean of many seeds."""
        weights, covariance, misfit = self.fit
        rows, height = self.design(cells), self.top(cells)
        share = expit(rows @ weights)
        slope = (height * share * (1 - share))[:, None] * rows
        variance = np.einsum("ni,ij,nj->n", slope, covariance, slope) + misfit * steepness(height * share) ** 2
        return height * share, np.sqrt(variance)

    def predict(self, cells: pd.DataFrame, seeds: Column) -> pd.DataFrame:
        """Predict the mean accuracy of a number of seeds at cells: columns predicted, low and high (95 %)."""
        mean, deviation = self.curve(cells)
        half, chance = Z * np.sqrt(deviation**2 + self.seed_variance(mean, seeds)), chance_of(cells["objects"])
        sides = {"predicted": mean, "low": mean - half, "high": np.minimum(mean + half, 1.0)}
        return cells.assign(**{name: chance + (1 - chance) * u for name, u in sides.items()})

    def critical(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the coverage at which the curve of each row's form, objects and completeness is at the line: columns
        critical, low and high (95 %), from draws of the coefficients; infinite where it never is."""
        weights, covariance, _ = self.fit
        draws = np.random.default_rng(0).multivariate_normal(weights, covariance, DRAWS)
        at_half, one_more = (self.design(cells.assign(coverage=share)) for share in (0.5, 0.75))
        share = np.divide(LINE, height := self.top(cells), out=np.ones(len(cells)), where=height > LINE)
        needed = np.where(share < 1, logit(np.minimum(share, 1 - 1e-9)), np.inf)
        found = [crossing(w @ at_half.T, w @ (one_more - at_half).T, needed) for w in (weights, draws)]
        low, high = np.quantile(found[1], (0.025, 0.975), axis=0, method="closest_observation")
        return cells.assign(critical=found[0], low=low, high=high)


def steepness(u: Column) -> Column:
    """Return 4 u (1 - u), how steep a logistic curve is at a height, 1 at the line."""
    inner = np.clip(u, 0.02, 0.98)
    return 4 * inner * (1 - inner)


def crossing(start: np.ndarray, slope: np.ndarray, needed: np.ndarray) -> np.ndarray:
    """Return the coverage at which start + slope * (coverage - 0.5) / 0.25 is `needed`; infinite if it doesn't rise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((slope > 0) & np.isfinite(needed), 0.5 + 0.25 * (needed - start) / slope, np.inf)


def interpolated(known: pd.DataFrame, column: str, cells: pd.DataFrame) -> Values:
    """Return the mean of a column over known cells with the form and objects of each of `cells`, linear between values
    of completeness; NaN where no cell has these."""
    means = known.groupby(["model", "objects", "completeness"])[column].mean()
    found = np.full(len(cells), np.nan)
    for line, part in means.groupby(level=[0, 1]):
        here = (cells["model"] == line[0]) & (cells["objects"] == line[1])
        found[here] = np.interp(cells["completeness"][here], part.index.get_level_values(2), part)
    return found


def held_out_checks(fitted: pd.DataFrame, held: pd.DataFrame) -> pd.DataFrame:
    """Predict held-out cells from fitted runs: columns as `predict`, with the mean `measured` over their `seeds`,
    whether it is `inside`, and what coverage `alone` predicts. Forms without fitted runs are left out."""
    cells = held.groupby(PLACE).agg(measured=("unseen", "mean"), seeds=("seed", "size")).reset_index()
    cells = cells[cells["model"].isin(fitted["model"])].reset_index(drop=True)
    found = Boundary(fitted).predict(cells, cells["seeds"].to_numpy())
    found["inside"] = found["measured"].between(found["low"], found["high"])
    found["alone"] = Boundary(fitted, alone=True).predict(cells, cells["seeds"].to_numpy())["predicted"]
    return found


def rmse(one: pd.Series, other: pd.Series) -> float:
    return float(np.sqrt(((one - other) ** 2).mean()))

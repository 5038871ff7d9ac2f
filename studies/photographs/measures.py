"""Accuracies with intervals over seeds and animal pairs, and their differences, from the records of finished runs.

Records of pairs that a training showed are left out.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe, roles_of
from menagerie.studies.analysis.paired_bootstrap import Points, merged, read_points
from menagerie.studies.analysis.two_levels import CONFIDENCE, FEWEST, enough, resampled_means, without_interval
from menagerie.studies.photographs.collection import Photographs
from menagerie.studies.photographs.jobs import Jobs, train_recipe
from menagerie.studies.photographs.trainings import Material, Training, all_trainings
from menagerie.studies.photographs.worlds import Shared
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.results import finished

RECOGNITION, SWAPS, KNOWN = "recognition", "swaps", "swaps where recognised"
MEASURES = {
    RECOGNITION: "an animal or a texture that the image doesn't show in place of one (tasks replace animal, replace "
    "texture)",
    SWAPS: "two textures or two places exchanged, in the same words (task swap): binding",
    KNOWN: "the same on images of which a model got all tasks of recognition right: what is wrong there isn't a thing "
    "or a texture that it doesn't know",
}
REPLACED = ("replace animal", "replace texture")


class Level(NamedTuple):
    """A mean or a difference of two, with its interval; NaN where there is none."""

    mean: float
    low: float
    high: float
    clusters: int
    signed: bool = False

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "–"
        form = (lambda value: f"{100 * value:+.1f}") if self.signed else (lambda value: f"{100 * value:.1f}")
        words = without_interval(self.low, self.high, self.clusters)
        return f"{form(self.mean)} [{words or f'{form(self.low)}, {form(self.high)}'}]"


NOTHING = Level(math.nan, math.nan, math.nan, 0)


def of_test(points: Points, label: str) -> Points:
    """The records of the tests in one world; their keys name the subset alone."""
    found = {}
    for (seed, subset, task, scene, caption), score in points.items():
        world, _, name = subset.rpartition("/")
        if world == label:
            found[seed, name, task, scene, caption] = score
    return found


def measured(points: Points, measure: str) -> Points:
    """The records that a measure is over."""
    if measure == RECOGNITION:
        return {key: score for key, score in points.items() if key[2] in REPLACED}
    swaps = {key: score for key, score in points.items() if key[2] == "swap"}
    if measure == SWAPS:
        return swaps
    unknown = {(*key[:2], key[3]) for key, score in points.items() if key[2] in REPLACED and score.value < 1}
    return {key: score for key, score in swaps.items() if (*key[:2], key[3]) not in unknown}


def without_pairs(points: Points, seen: Callable[[int], set[str]]) -> Points:
    """The records of animal pairs that no training shows; `seen` gives those that one does, by seed."""
    shown = {seed: seen(seed) for seed in {key[0] for key in points}}
    return {key: score for key, score in points.items() if score.animals not in shown[key[0]]}


def level(points: Points) -> Level:
    """The mean of all records."""
    return compared({}, points)[1]


def compared(first: Points, second: Points) -> tuple[Level, Level, Level]:
    """The means of two groups, and the second minus the first: animal pairs are drawn for both together."""
    sums, counts, seeds = tally([first, second])
    if not seeds:
        return NOTHING, NOTHING, NOTHING
    drawn, known, has = resampled_means(sums, counts, seeds), enough(counts, seeds), counts > 0
    means = [mean(sums, counts, group) for group in (0, 1)]
    levels = [with_interval(means[k], drawn[:, k], int(has[:, k].sum()), bool(known[k]), 0.0) for k in (0, 1)]
    if not has.any(0).all():
        return *levels, NOTHING
    gap = with_interval(means[1] - means[0], drawn[:, 1] - drawn[:, 0], int(has.all(1).sum()), bool(known.all()))
    return *levels, gap._replace(signed=True)


def mean(sums: Float64[np.ndarray, "k v"], counts: Float64[np.ndarray, "k v"], group: int) -> float:
    """The mean of one group; NaN of none."""
    total = counts[:, group].sum()
    return float(sums[:, group].sum() / total) if total else math.nan


def with_interval(
    value: float, drawn: Float64[np.ndarray, " r"], clusters: int, known: bool, least: float = -1.0
) -> Level:
    """A value from `least` to 1 with the percentile interval of its draws, where there are enough clusters."""
    if not known or clusters < FEWEST or np.isnan(drawn).all():
        return Level(value, math.nan, math.nan, clusters)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail]).clip(least, 1)
    return Level(value, float(low), float(high), clusters)


def tally(groups: list[Points]) -> tuple[Float64[np.ndarray, "k v"], Float64[np.ndarray, "k v"], list[int]]:
    """Points and numbers of each animal pair of each seed in each group, and the pairs' seeds."""
    clusters: dict[tuple[int, str], list[list[float]]] = {}
    for number, points in enumerate(groups):
        for key, score in points.items():
            sums = clusters.setdefault((key[0], score.animals), [[0.0, 0.0] for _ in groups])
            sums[number][0] += score.value
            sums[number][1] += 1
    keys = sorted(clusters)
    table = np.array([clusters[key] for key in keys], np.float64).reshape(len(keys), len(groups), 2)
    return table[..., 0], table[..., 1], [seed for seed, _ in keys]


class StudyState(NamedTuple):
    """All that a report is made of."""

    config: Any
    material: Material
    photographs: Photographs
    jobs: Jobs
    audit: list[Shared]
    lacking: list[str]
    """The questions that can't be answered, and why."""
    samples: dict[str, str]
    """Sample images of each test, as data URIs."""
    notes: dict[str, Any]

    @property
    def out(self) -> Path:
        return self.jobs.out


def done_jobs(study: StudyState) -> dict[Training, Job]:
    found = {}
    for training in all_trainings(study.config, study.material):
        job = study.jobs.job(training)
        if job is not None and finished(job.folder) is not None:
            found[training] = job
    return found


class Lines:
    """The records of all seeds of each training, for which all must be finished."""

    def __init__(self, study: StudyState, done: Mapping[Training, Job]) -> None:
        self.study, self.done = study, done

    def points(self, training: Training, label: str, *others: Training) -> Points:
        """The records of one test, of pairs that neither the training nor any of `others` shows; empty before all seeds
        are finished."""
        seeds = [training._replace(seed=seed) for seed in range(self.study.config.seeds)]
        if not all(run in self.done for run in seeds):
            return {}
        points = of_test(merged(points_of(self.done[run].folder, run.seed) for run in seeds), label)
        compared = [training, *others, *(run.start for run in (training, *others) if run.start)]

        def seen(seed: int) -> set[str]:
            return set().union(*(self.trained_pairs(run._replace(seed=seed)) for run in compared))

        return without_pairs(points, seen)

    def trained_pairs(self, training: Training) -> frozenset[str]:
        """The animal pairs that a training of binding shows, as records name them; none of a spatial one, which is
        compared with itself alone."""
        recipe = train_recipe(self.study.config, training, self.study.jobs.worlds)
        return pairs_of(recipe) if isinstance(recipe, BindingRecipe) else frozenset()

    def images(self, training: Training) -> int:
        """Distinct images that a run was trained on."""
        return int((finished(self.done[training].folder) or {})["train_images"])


@cache  # what is finished doesn't change, and the report is written anew after many a run
def points_of(folder: Path, seed: int) -> Points:
    """The records of a run."""
    return read_points([(seed, folder)])


@cache
def pairs_of(recipe: BindingRecipe) -> frozenset[str]:
    """The pairs that a recipe trains on."""
    roles, _ = roles_of(recipe, load_world(recipe.world))
    return frozenset(" + ".join(sorted(pair)) for pair in roles.train)

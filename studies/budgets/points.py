"""Accuracy and cost of each model at each budget, from the runs that are finished."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from menagerie.studies.analysis.paired_bootstrap import Difference, Points, difference, pooled, read_points
from menagerie.studies.budgets.costs import Cost, cost_of
from menagerie.studies.budgets.rounds import Course
from menagerie.studies.budgets.setups import Run, Setup, Trained
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.results import collect, finished


class Point(NamedTuple):
    """All seeds of a model at one budget."""

    steps: int
    cost: Cost
    validation: float
    """Mean over seeds, 0 to 1."""
    seeds: tuple[float, ...]
    """Accuracy of each seed on what is judged, 0 to 1."""
    level: Difference
    """Their mean with its interval."""
    records: Points
    jobs: tuple[Job, ...]

    def accuracies(self, subset: str) -> list[float]:
        """Accuracy (%) of each seed on swaps of one test, where it has any."""
        scores = [result["subsets"].get(subset, {}).get("swap") for result in collect(job.folder for job in self.jobs)]
        return [100 * score["accuracy"] for score in scores if score and score["accuracy"] is not None]


class Line(NamedTuple):
    """A model's way at one split."""

    split: str
    model: str
    course: Course
    points: tuple[Point, ...]
    """By budget, as far as all seeds are finished."""

    @property
    def best(self) -> Point | None:
        """The budget that is best on validation, of equal ones the smallest; None before any is finished."""
        return max(self.points, key=lambda point: (point.validation, -point.steps), default=None)

    def matching(self, validation: float) -> Point | None:
        """The smallest budget at which the model is as good on validation; None if it never is."""
        return next((point for point in self.points if point.validation >= validation), None)


def lines_of(trained: Trained, courses: Mapping[tuple[str, str], Course]) -> list[Line]:
    """All models at all splits."""
    return [
        Line(split, model, course, tuple(points_of(trained, split, course.setup)) if course.setup else ())
        for (split, model), course in courses.items()
    ]


def points_of(trained: Trained, split: str, setup: Setup) -> list[Point]:
    """The budgets of a choice of which all seeds are finished."""
    config = trained.config
    jobs = {
        steps: [trained.job(Run(split, setup, seed, steps)) for seed in range(config.seeds)] for steps in config.budgets
    }
    alike = [job for its in jobs.values() for job in its]
    whole = {steps: its for steps, its in jobs.items() if all(finished(job.folder) for job in its)}
    return [point_of(steps, its, alike) for steps, its in whole.items()]


def point_of(steps: int, jobs: Sequence[Job], alike: Sequence[Job]) -> Point:
    """One budget, all of whose seeds are finished."""
    each = [judged(job.folder, job.cell.seed, job.cell.data.recipe.judged) for job in jobs]
    records = {key: point for own in each for key, point in own.items()}
    results = collect(job.folder for job in jobs)
    validation = mean(result["subsets"]["validation"]["swap"]["accuracy"] for result in results)
    shares = tuple(mean(point.value for point in own.values()) for own in each)
    return Point(steps, cost_of(jobs[0], alike), validation, shares, level(records), records, tuple(jobs))


@cache  # what is finished doesn't change, and the report is written anew after many a run
def judged(folder: Path, seed: int, tests: tuple[str, ...]) -> Points:
    """The points of a run on swaps of the tests that are judged, as those of one test called ""."""
    return pooled(read_points([(seed, folder)]), [(test, "swap") for test in tests])


def level(records: Points) -> Difference:
    """Accuracy with its interval over seeds and animal pairs."""
    nothing = {key: point._replace(value=0.0) for key, point in records.items()}
    return difference(nothing, records, "", "")


def above(first: Point, second: Point) -> Difference | None:
    """By how much the second is more accurate on the same records; None where there is none."""
    return difference(first.records, second.records, "", "")

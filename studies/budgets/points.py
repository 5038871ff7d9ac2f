"""Accuracy and cost of each model at each budget, from the runs that are finished, and what they say in sentences."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from menagerie.studies.analysis.paired_bootstrap import Difference, Points, difference, pooled, read_points
from menagerie.studies.budgets.costs import Cost, cost_of
from menagerie.studies.budgets.courses import BEGUN, Config, Course, Run, Setup, Trained
from menagerie.studies.frame.cells import title_of
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.results import collect, finished


class Point(NamedTuple):
    """The results of all seeds of a model at one budget."""

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
    """The results of a model at one split, budget by budget."""

    split: str
    model: str
    course: Course
    points: tuple[Point, ...]
    """One point for each budget whose seeds are all finished."""

    @property
    def best(self) -> Point | None:
        """The budget that is best on validation, of equal ones the smallest; None before any is finished."""
        return max(self.points, key=lambda point: (point.validation, -point.steps), default=None)

    def matching(self, validation: float) -> Point | None:
        """The smallest budget at which the model is as good on validation; None if it never is."""
        return next((point for point in self.points if point.validation >= validation), None)


def lines_of(trained: Trained, courses: Mapping[tuple[str, str], Course]) -> list[Line]:
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
    alike = [job for batch in jobs.values() for job in batch]
    whole = {steps: batch for steps, batch in jobs.items() if all(finished(job.folder) for job in batch)}
    return [point_of(steps, batch, alike) for steps, batch in whole.items()]


def point_of(steps: int, jobs: Sequence[Job], alike: Sequence[Job]) -> Point:
    """The point of a budget whose seeds are all finished."""
    each = [judged(job.folder, job.cell.seed, job.cell.data.recipe.judged) for job in jobs]
    records = {key: point for points in each for key, point in points.items()}
    results = collect(job.folder for job in jobs)
    validation = mean(result["subsets"]["validation"]["swap"]["accuracy"] for result in results)
    shares = tuple(mean(point.value for point in points.values()) for points in each)
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
    """The difference in accuracy, second minus first, on the records that both have; None if there are none."""
    return difference(first.records, second.records, "", "")


VERDICTS = {
    "binds": "its interval lies at or above the bar",
    "does not bind": "its interval lies below the bar, and validation stopped rising before the largest budget",
    "not yet": "its interval lies below the bar, and validation still rose with the largest budget: more may help",
    "at chance": "its interval lies below the bar, and validation left chance with no budget: more may help",
    "open": "its interval lies below the bar so far: budgets are to be trained yet, or are too few to say if more help",
    "undecided": "the bar lies within its interval, or there are too few seeds or pairs for one",
    "–": "no budget is finished yet with all seeds",
}


def verdict(config: Config, line: Line) -> str:
    """The verdict on a model at a split, one of `VERDICTS`."""
    best = line.best
    if best is None:
        return "–"
    if best.level.conclusive and best.level.low >= config.bar:
        return "binds"
    if best.level.conclusive and best.level.high < config.bar:
        return "does not bind" if line.course.stopped else below(config, line.course)
    return "undecided"


def below(config: Config, course: Course) -> str:
    """The verdict on a model that stays below the bar while its validation may still rise."""
    *before, last = course.validation or (0.0,)
    if course.missing or not before:
        return "open"
    if max(course.validation) < BEGUN:
        return "at chance"
    return "not yet" if last > max(before) + config.rise else "open"


def sentences(config: Config, lines: Sequence[Line]) -> list[str]:
    """For each split, write one sentence on the first model and one on each other model that has results there."""
    said = []
    for split in dict.fromkeys(line.split for line in lines):
        first, *others = [line for line in lines if line.split == split]
        if first.best is None:
            continue
        said.append(on_first(config, first, first.best))
        said += [on_other(first.best, title_of(first.model), line, line.best) for line in others if line.best]
    return said


def on_first(config: Config, line: Line, best: Point) -> str:
    """A sentence on how accurate the first model becomes with compute."""
    ends = {
        "binds": f"so with enough training it binds (bar: {100 * config.bar:.0f} %)",
        "does not bind": f"below the bar of {100 * config.bar:.0f} %, and more training no longer helps on validation",
        "not yet": f"below the bar of {100 * config.bar:.0f} %, but validation still rose with the largest budget",
        "at chance": f"below the bar of {100 * config.bar:.0f} %, and on validation it left chance with no budget",
        "open": f"so far below the bar of {100 * config.bar:.0f} %; these budgets don't say whether more would help",
        "undecided": f"which leaves undecided whether it is above the bar of {100 * config.bar:.0f} %",
    }
    place = "On your own split" if line.split == "own" else f"At the hardest cell of the {line.split} split"
    return (
        f"{place} {title_of(line.model)} prefers the true caption in "
        f"{percent(best.level)} of what is unseen, after the {best.steps} steps that validation chose of up to "
        f"{line.points[-1].steps} ({spent(best)}): {ends[verdict(config, line)]}."
    )


def on_other(first: Point, first_title: str, line: Line, best: Point) -> str:
    """A sentence on how much better another model is at its own best budget, and what it needs to be as good as the
    first."""
    gap, match = above(first, best), line.matching(first.validation)
    times = f"with {best.cost.flops / first.cost.flops:.2g} times the operations"
    text = f"{title_of(line.model)} gets {percent(best.level)} after {best.steps} steps, {times}: {points(gap)}"
    if match is None:
        return f"{text}; at no budget is it as good on validation as {first_title} at its best."
    share = f"with {match.cost.flops / first.cost.flops:.2g} times the operations"
    return f"{text}; on validation it is as good as {first_title} at its best after {match.steps} steps, {share}."


def percent(level: Difference) -> str:
    """An accuracy with its interval."""
    if not level.conclusive:
        return f"{100 * level.mean:.1f} % [{level.bounds}]"
    return f"{100 * level.mean:.1f} % [{100 * level.low:.1f}, {100 * level.high:.1f}]"


def points(gap: Difference | None) -> str:
    """A difference in percentage points."""
    return "on no common records" if gap is None else f"{gap} points"


def spent(point: Point) -> str:
    """The cost of a run in words."""
    seconds = "" if math.isnan(point.cost.cpu_seconds) else f", {short(point.cost.cpu_seconds)} CPU-seconds"
    return f"{point.cost.images:,} images, {short(point.cost.flops / 1e12)} TFLOP{seconds}"


def short(value: float) -> str:
    """A quantity with three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

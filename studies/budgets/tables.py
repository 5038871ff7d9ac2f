"""Tables of a study of compute: every budget, what validation chose, and the choices that were left on the way."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from menagerie.studies.analysis.tables import DASH, WAITING
from menagerie.studies.budgets.costs import Cost, cost_of
from menagerie.studies.budgets.known import known_of
from menagerie.studies.budgets.points import Line, Point, above
from menagerie.studies.budgets.rounds import Known
from menagerie.studies.budgets.setups import Run, Setup, Trained, setups_of
from menagerie.studies.budgets.words import percent, short, title, verdict
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.results import COLUMNS, finished, rows

OWN = ("split", "architecture", "batch", "learning_rate", "steps", "flops", "cpu_seconds")
RESULTS = (*COLUMNS[:2], *OWN, *COLUMNS[2:])


def best_table(trained: Trained, lines: Sequence[Line]) -> pd.DataFrame:
    """A row for each model and split: the budget that validation chose, and how it differs from the first model's."""
    first = {line.split: line.best for line in reversed(lines) if line.model == trained.config.models[0]}
    table = []
    for line in lines:
        best, base = line.best, first[line.split]
        gap = str(above(base, best)) if best and base and base is not best else DASH
        known = shown(best) if best else [WAITING] * 6
        table.append([line.split, title(line.model), *known, gap, verdict(trained.config, line)])
    return pd.DataFrame(table, columns=["split", "model", *HEADER, "above the first", "outcome"])


HEADER = ("steps", "images", "TFLOP", "CPU-seconds", "validation (%)", "unseen (%)")


def shown(point: Point) -> list[str]:
    """A point as texts, with the columns of `HEADER`."""
    seconds = DASH if math.isnan(point.cost.cpu_seconds) else short(point.cost.cpu_seconds)
    counts = [str(point.steps), f"{point.cost.images:,}", short(point.cost.flops / 1e12), seconds]
    return [*counts, f"{100 * point.validation:.1f}", percent(point.level).replace(" %", "")]


def budget_table(lines: Sequence[Line]) -> pd.DataFrame:
    """A row for each model, split and budget."""
    table = [
        [line.split, title(line.model), str(line.course.setup), *shown(point)]
        for line in lines
        for point in line.points
    ]
    return pd.DataFrame(table, columns=["split", "model", "choice", *HEADER])


def choice_table(trained: Trained) -> pd.DataFrame:
    """Validation (%) of every choice with the first seed by budget; a dash where it went no further."""
    config, known = trained.config, known_of(trained)
    table = [
        [split, title(model), str(setup), *validations(config.budgets, known, split, setup)]
        for split in trained.grids
        for model in config.models
        for setup in setups_of(config, model)
    ]
    return pd.DataFrame(table, columns=["split", "model", "choice", *map(str, config.budgets)])


def validations(budgets: Sequence[int], known: Known, split: str, setup: Setup) -> list[str]:
    """Validation (%) of one choice by budget."""
    values = [known.get(Run(split, setup, 0, steps)) for steps in budgets]
    return [DASH if value is None else f"{100 * value:.1f}" for value in values]


def runs_of(trained: Trained) -> list[tuple[Run, Job]]:
    """All runs that are finished."""
    pairs = [(own, trained.job(own)) for own in known_of(trained)]
    return [(own, job) for own, job in pairs if finished(job.folder)]


def result_rows(trained: Trained) -> Iterator[dict[str, Any]]:
    """A row for each finished run, subset and task."""
    done = runs_of(trained)
    alike: dict[tuple[str, Setup], list[Job]] = {}
    for own, job in done:
        alike.setdefault((own.split, own.setup), []).append(job)
    for own, job in done:
        cost: Cost = cost_of(job, alike[own.split, own.setup])
        its = own.setup._asdict() | {"split": own.split, "steps": own.steps}
        its |= {"flops": cost.flops, "cpu_seconds": "" if math.isnan(cost.cpu_seconds) else cost.cpu_seconds}
        yield from (row | its for row in rows([finished(job.folder)]))

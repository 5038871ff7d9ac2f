"""What a study of compute writes: tables as CSV and LaTeX, figures, and `report.html`."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from menagerie.envs.core.figures import write_figure
from menagerie.envs.core.files import write_csv, write_text
from menagerie.envs.core.pages import write_page
from menagerie.studies.analysis.curves import Curve, training_curves
from menagerie.studies.analysis.paired_bootstrap import Points, counts_of, fewest_pairs, numbers_of
from menagerie.studies.analysis.tables import DASH, WAITING, flat, to_csv, to_latex, to_rows
from menagerie.studies.analysis.two_levels import meaning
from menagerie.studies.analysis.words import TERMS, TITLES, models_explained, smoke_words
from menagerie.studies.budgets.costs import Cost, cost_of
from menagerie.studies.budgets.courses import Known, Run, Setup, Trained, courses_of, known_of, setups_of
from menagerie.studies.budgets.figures import all_tests, compute_figure, other_scales
from menagerie.studies.budgets.points import (
    VERDICTS,
    Line,
    Point,
    above,
    lines_of,
    percent,
    sentences,
    short,
    verdict,
)
from menagerie.studies.frame.cells import title_of
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.folder import where_it_ran
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
        table.append([line.split, title_of(line.model), *known, gap, verdict(trained.config, line)])
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
        [line.split, title_of(line.model), str(line.course.setup), *shown(point)]
        for line in lines
        for point in line.points
    ]
    return pd.DataFrame(table, columns=["split", "model", "choice", *HEADER])


def choice_table(trained: Trained) -> pd.DataFrame:
    """Validation (%) of every choice with the first seed by budget; a dash where it went no further."""
    config, known = trained.config, known_of(trained)
    table = [
        [split, title_of(model), str(setup), *validations(config.budgets, known, split, setup)]
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
    pairs = [(run, trained.job(run)) for run in known_of(trained)]
    return [(run, job) for run, job in pairs if finished(job.folder)]


def result_rows(trained: Trained) -> Iterator[dict[str, Any]]:
    """A row for each finished run, subset and task."""
    done = runs_of(trained)
    alike: dict[tuple[str, Setup], list[Job]] = {}
    for run, job in done:
        alike.setdefault((run.split, run.setup), []).append(job)
    for run, job in done:
        cost: Cost = cost_of(job, alike[run.split, run.setup])
        labels = run.setup._asdict() | {"split": run.split, "steps": run.steps}
        labels |= {"flops": cost.flops, "cpu_seconds": "" if math.isnan(cost.cpu_seconds) else cost.cpu_seconds}
        yield from (row | labels for row in rows([finished(job.folder)]))


def publish(trained: Trained) -> Path:
    """Write all that the finished runs allow; returns the report."""
    config, out = trained.config, trained.out
    lines = lines_of(trained, courses_of(trained))
    tables = {"best": best_table(trained, lines), "compute": budget_table(lines), "choices": choice_table(trained)}
    for name, table in tables.items():
        to_csv(out / f"{name}.csv", table)
    write_text(out / "results.tex", to_latex(tables["best"], "The budget of each model that validation chose."))
    write_csv(out / "results.csv", RESULTS, ([row.get(name) for name in RESULTS] for row in result_rows(trained)))
    figures = draw_figures(trained, lines)
    counts = {line.split: counts_of(one_seed(line.points[0].records)) for line in lines if line.points}
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title="Accuracy against compute",
        about=models_explained(config.models),
        terms=TERMS,
        sentences=sentences(config, lines),
        bar=config.bar,
        judged=judged_by(trained),
        patience=config.patience,
        rise=100 * config.rise,
        decay=config.decay,
        stopped={f"{line.split}, {line.model}": state(line) for line in lines},
        meaning=meaning(config.seeds, fewest_pairs(counts.values(), [("", "")])),
        record_numbers="; ".join(
            f"{split} {numbers_of(list(by_column.values()))}" for split, by_column in counts.items()
        ),
        verdicts=VERDICTS,
        tables={name: to_rows(table) for name, table in tables.items()},
        figures={name: write_figure(out / "figures" / f"{name}.png", figure) for name, figure in figures.items()},
        config=flat(asdict(config)),
        notes=where_it_ran(out),
        smoke=smoke_words(config.budgets),
    )


def judged_by(trained: Trained) -> dict[str, tuple[str, ...]]:
    """The tests of what is unseen, by split."""
    return {split: grid.split_of(0, **grid.places[0]).judged for split, grid in trained.grids.items()}


def draw_figures(trained: Trained, lines: list[Line]) -> dict[str, Any]:
    """All figures that there are runs for."""
    recipes = {split: grid.split_of(0, **grid.places[0]) for split, grid in trained.grids.items()}
    judged = {split: in_title(names) for split, names in judged_by(trained).items()}
    if not any(line.points for line in lines):
        return {}
    tests = {split: ("validation", *recipe.all_tests) for split, recipe in recipes.items()}
    figures = {"compute": compute_figure(lines, trained.config.bar, judged), "scales": other_scales(lines)}
    figures["tests"] = all_tests(lines, tests)
    longest = [
        Curve(line.model, line.split, job.folder) for line in lines for point in line.points[-1:] for job in point.jobs
    ]
    training = training_curves(longest)
    return figures | ({"training": training} if training else {})


def in_title(tests: Sequence[str]) -> str:
    """The tests of which a panel shows the mean, in one line."""
    names = "; ".join(TITLES.get(test, test).replace("\n", " ") for test in tests)
    return names if len(tests) == 1 else f"mean of {names}"


def one_seed(records: Points) -> Points:
    """Choose the records of the first seed."""
    first = min(key[0] for key in records)
    return {key: point for key, point in records.items() if key[0] == first}


def state(line: Line) -> str:
    """The state of a line in words."""
    if line.course.setup is None:
        return "choices are being halved"
    if line.course.missing:
        return f"{len(line.points)} budgets finished"
    return "validation stopped rising" if line.course.stopped else "trained up to the largest budget"

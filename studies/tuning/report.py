"""What came out of a tuning study: trials as CSV, the best recipe of each model, and a page with their course."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from optuna.trial import FrozenTrial

from menagerie.envs.core.figures import (
    CHANCE,
    PALE,
    chance_line,
    legend_above,
    line_style,
    model_panels,
    panels_size,
    short,
    write_figure,
)
from menagerie.envs.core.pages import write_page
from menagerie.studies.analysis.paired_bootstrap import Counts, counts_in, record_line
from menagerie.studies.analysis.tables import shown
from menagerie.studies.analysis.trial_figures import parallel_figures
from menagerie.studies.analysis.words import TERMS, models_explained, smoke_words
from menagerie.studies.frame.cells import SEARCHED, conditions
from menagerie.studies.frame.grid import Grid
from menagerie.studies.runs.folder import where_it_ran
from menagerie.studies.runs.results import finished
from menagerie.studies.tuning.space import Tuning, own_options

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

Row = dict[str, Any]


def rows_of(model: str, tried: Sequence[FrozenTrial], repeated: Sequence[FrozenTrial]) -> list[Row]:
    """A row for each trial of a model: its parameters, its accuracy on validation, and as "repeated" the mean
    over seeds; None where it was pruned, or isn't one of the best."""
    means = {trial.user_attrs["trial"]: trial.value for trial in repeated if trial.value is not None}
    return [
        {"model": model, "trial": trial.number, "validation": trial.value, "repeated": means.get(trial.number)}
        | {name: trial.params[name] for name in (*SEARCHED, "architecture")}
        | {"options": own_options(trial.params)}
        for trial in tried
    ]


def failures(model: str, trials: Sequence[FrozenTrial]) -> dict[str, str]:
    """Why trials of a model have no value."""
    pruned = [trial for trial in trials if trial.value is None]
    return {f"{model}, trial {trial.number}": trial.user_attrs.get("outcome", "") for trial in pruned}


def chosen(rows: Sequence[Row]) -> dict[str, Row]:
    """Choose, for each model, the row whose recipe is used: the best of the repeated trials, of equal ones the
    first."""
    found: dict[str, Row] = {}
    for row in rows:
        if row["repeated"] is None:
            continue
        if row["model"] not in found or row["repeated"] > found[row["model"]]["repeated"]:
            found[row["model"]] = row
    return found


def best(rows: Sequence[Row], grid: Grid) -> dict[str, Any]:
    """The recipe of each model's chosen trial, with the conditions of the search, as `binding_grid.py --tuned` reads
    it."""
    return {
        model: {
            "validation": row["repeated"],
            "architecture": row["architecture"],
            "recipe": asdict(grid.recipe) | {name: row[name] for name in SEARCHED},
            "tuned_for": conditions(grid, model),
        }
        | ({"options": row["options"]} if row.get("options") else {})
        for model, row in chosen(rows).items()
    }


ACCURACIES = ("validation", "repeated")  # columns of fractions, shown in percent
REPEATED = "its mean over seeds, where repeated"
RING = 17  # points across


def write_report(
    out: Path,
    rows: Sequence[dict[str, Any]],
    trials: Mapping[str, Sequence[FrozenTrial]],
    failed: dict[str, str],
    config: Tuning,
) -> Path:
    """`report.html`, best trials first, with the reasons of those that failed; `trials` are those of each model, the
    best of which were repeated with `config.final_seeds` seeds."""
    models = list(trials)
    ordered = sorted(
        rows, key=lambda row: (models.index(row["model"]), -(row["repeated"] or 0), -value(row), row["trial"])
    )
    winners = {model: row["trial"] for model, row in chosen(rows).items()}
    searched = parallel_figures(trials, percent, "validation accuracy (%)", chosen=winners)
    columns = [f"{name} (%)" if name in ACCURACIES else name for name in list(rows[0])[1:]]
    means = {model: f"{100 * row['repeated']:.1f}" for model, row in chosen(rows).items()}
    return write_page(
        out / "report.html",
        Path(__file__).with_suffix(".html"),
        title=f"Equal tuning: {', '.join(models)}",
        trials=len(rows) // len(models),
        history=write_figure(out / "figures" / "history.png", history(rows, models, winners)),
        parallel={
            model: write_figure(out / "figures" / f"parallel-{k}.png", figure)
            for k, (model, figure) in enumerate(searched.items(), start=1)
        },
        table=[["model", "chosen", *columns], *(table_row(row, winners) for row in ordered)],
        winners=winners,
        means=means,
        ties=ties(means),
        lone=all(sum(row["repeated"] is not None for row in rows if row["model"] == model) < 2 for model in models),
        record_numbers=record_line(counts_of_runs(out), {("validation", "swap"): "validation"}),
        about=models_explained(models),
        terms=TERMS,
        failed=failed,
        seeds=config.final_seeds,
        notes=where_it_ran(out),
        smoke=smoke_words([config.grid.recipe.steps]),
    )


def ties(means: Mapping[str, str]) -> list[str]:
    """The models whose chosen trials have the same mean, as it is shown."""
    groups = {mean: [model for model, shown_mean in means.items() if shown_mean == mean] for mean in means.values()}
    return [" and ".join(models) for models in groups.values() if len(models) > 1]


def counts_of_runs(out: Path) -> list[Counts]:
    """The records of all finished runs that are in the study's folder."""
    return [counts_in(folder) for folder in sorted((out / "cells").glob("*")) if finished(folder)]


def table_row(row: dict[str, Any], winners: Mapping[str, int]) -> list[str]:
    """A trial as texts; the one whose recipe is taken is marked."""
    model, *rest = (
        f"{100 * cell:.1f}" if name in ACCURACIES and cell is not None else shown(cell) for name, cell in row.items()
    )
    return [model, "✓" if winners.get(row["model"]) == row["trial"] else "", *rest]


def value(row: dict[str, Any]) -> float:
    """Validation accuracy of a trial; 0 for one that failed."""
    return row["validation"] or 0.0


def percent(trial: FrozenTrial) -> float | None:
    """Validation accuracy of a trial in percent; None for one that failed."""
    return None if trial.value is None else 100 * trial.value


def history(rows: Sequence[dict[str, Any]], models: Sequence[str], winners: Mapping[str, int]) -> Figure:
    """Validation accuracy of every trial with its one seed, and the best so far; of trials that were repeated the mean
    over seeds, with a ring round the one whose recipe is taken."""
    figure = Figure(panels_size(models, (8.8, 3.6), (2.4, 1.9)), layout="constrained")
    panels = model_panels(figure, models)
    for axis, strong in panels:
        for number, model in enumerate(models):
            of_model = [row for row in rows if row["model"] == model]
            draw_course(axis, of_model, winners.get(model), line_style(number) if model in strong else None)
        chance_line(axis)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.supxlabel("trial", fontsize=10)
    figure.supylabel("validation accuracy (%)", fontsize=10)
    names = [Line2D([], [], **line_style(k), label=short(model)) for k, model in enumerate(models)]
    legend_above(figure, [*(names if len(panels) == 1 else []), *course_keys()])
    return figure


def course_keys() -> list[Line2D]:
    """Legend entries that explain lines and points, whatever their colour."""
    grey, lone = {"color": "0.4"}, {"marker": "o", "linestyle": "none"}
    return [
        Line2D([], [], **grey, **lone, alpha=0.35, label="a trial, its one seed"),
        Line2D([], [], **grey, label="the best of these so far"),
        Line2D([], [], **grey, marker="_", markersize=13, markeredgewidth=2.5, linestyle="none", label=REPEATED),
        Line2D(
            [],
            [],
            **lone,
            markersize=RING,
            markerfacecolor="none",
            markeredgecolor="0.4",
            label="chosen: the best mean",
        ),
        Line2D([], [], **CHANCE, label="chance"),
    ]


def draw_course(axis: Axes, rows: Sequence[dict[str, Any]], winner: int | None, style: dict[str, str] | None) -> None:
    """One model's trials; without a style only their best so far, pale."""
    trials, values = [row["trial"] for row in rows], 100 * np.array([value(row) for row in rows])
    best = np.maximum.accumulate(values)
    if style is None:
        axis.step(trials, best, where="post", **PALE)
        return
    axis.step(trials, best, where="post", color=style["color"])
    axis.plot(trials, values, linestyle="none", markersize=5, alpha=0.35, **style)
    for row, one_seed in zip(rows, values, strict=True):
        if row["repeated"] is None:
            continue
        trial, mean = row["trial"], 100 * row["repeated"]
        axis.plot([trial, trial], [one_seed, mean], color=style["color"], linewidth=0.8)
        axis.plot(trial, mean, "_", color=style["color"], markersize=13, markeredgewidth=2.5)
        if trial == winner:
            ring = {"markersize": RING, "markerfacecolor": "none", "markeredgecolor": style["color"]}
            axis.plot(trial, mean, "o", **ring)

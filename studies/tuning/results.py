"""What came out of a tuning study: a row for each trial, and the best recipe of each model."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from optuna.trial import FrozenTrial

from menagerie.studies.grids.cells import conditions
from menagerie.studies.grids.grid import Grid
from menagerie.studies.grids.tuned_recipes import SEARCHED
from menagerie.studies.tuning.space import own_options

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
    """Of each model the row whose recipe is taken: the best of the repeated trials, of equal ones the first."""
    found: dict[str, Row] = {}
    for row in rows:
        if row["repeated"] is None:
            continue
        if row["model"] not in found or row["repeated"] > found[row["model"]]["repeated"]:
            found[row["model"]] = row
    return found


def best(rows: Sequence[Row], grid: Grid) -> dict[str, Any]:
    """What each model's chosen trial says, and what it was tuned for, as `binding_grid.py --tuned` reads it."""
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

"""Reads the recipes that `studies/tune.py` found best, each model's own."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from envs.errors import UserError
from models.recipes import Recipe


def read_tuned(path: Path, models: Sequence[str], here: dict[str, Any]) -> dict[str, tuple[str, Recipe]]:
    """Architecture and recipe of every model; they must have been tuned under the conditions `here`."""
    try:
        found = json.loads(path.read_text())
        mine = {model: found[model] for model in models}
        for its in mine.values():
            check_conditions(path, its["tuned_for"], here)
        return {model: (str(its["architecture"]), read_recipe(its["recipe"])) for model, its in mine.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"--tuned {path}: no recipes for {', '.join(models)} there ({error}); give the best.json that "
            "studies/tune.py writes, tuned for these models"
        ) from error


def check_conditions(path: Path, there: dict[str, Any], here: dict[str, Any]) -> None:
    """Raise if recipes were tuned for another world, another resolution or other sizes of OC-CLIP."""
    for name, value in here.items():
        if there[name] != value:
            raise UserError(
                f"--tuned {path} was tuned with {name} {there[name]}, this grid has {value}; tune for this one"
            )


def read_recipe(fields: dict[str, Any]) -> Recipe:
    """A recipe that was written as JSON; a field of another type raises `TypeError`."""
    for name, default in asdict(Recipe()).items():
        numbers = (int, float) if default is None or isinstance(default, float) else type(default)
        right = isinstance(fields[name], list) if name == "betas" else isinstance(fields[name], numbers)
        if not right and not (fields[name] is None and default is None):
            raise TypeError(f"{name} is {fields[name]!r}")
    return Recipe(**fields | {"betas": tuple(fields["betas"])})

"""Reads the recipes that `studies/tune.py` chose, each model's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.records import read_record
from menagerie.envs.core.validation import build
from menagerie.models.recipe import Recipe

# What tuning searches beside the towers; all else of a recipe is the study's own.
SEARCHED = ("learning_rate", "weight_decay", "warmup", "singles_share", "single_object_phase")
# Options of OC-CLIP's loss, which recipes of all models had once.
MOVED = {"local_weight", "local_negatives"}
SHIPPED = Path(__file__).parents[1] / "recipes"


class Tuned(NamedTuple):
    """What tuning chose for one model, and under which conditions."""

    architecture: str
    fields: dict[str, Any]
    options: dict[str, Any]
    """The model's own, where they were searched too."""
    conditions: dict[str, Any]


def recipe_file(name: str) -> Path:
    """The file of shipped recipes called `name`, or the path that it is."""
    if name.endswith(".json"):
        return Path(name)
    return SHIPPED / f"{choose('recipes for --tuned', name, sorted(file.stem for file in SHIPPED.glob('*.json')))}.json"


def read_tuned(name: str, models: Sequence[str]) -> dict[str, Tuned]:
    """What was tuned for those of `models` that the file has; raises where it has nothing for any of them."""
    chosen = read_those(name, models)
    if not chosen:
        raise UserError(f"--tuned {name} has no recipes for {', '.join(models)}; give what studies/tune.py writes")
    return chosen


def without_recipe(name: str, models: Sequence[str]) -> list[str]:
    """Those of `models` that nothing was tuned for in the file."""
    there = read_those(name, models)
    return [model for model in models if model not in there]


def read_those(name: str, models: Sequence[str]) -> dict[str, Tuned]:
    """What was tuned for those of `models` that the file has, if any."""
    path = recipe_file(name)
    try:
        file = read_record(path, dict[str, dict[str, Any]])
        return {model: read_model(file[model]) for model in models if model in file}
    except (OSError, ValueError, KeyError, TypeError, UserError) as error:
        raise UserError(f"--tuned {name}: {path} can't be read ({error}); give what studies/tune.py writes") from error


def read_model(entry: dict[str, Any]) -> Tuned:
    """One model's entry; a value that no recipe may have raises `UserError`."""
    if moved := sorted(MOVED & entry["recipe"].keys()):
        raise UserError(f"{moved[0]} is an option of oc-clip, no field of recipes: delete it there")
    fields = {name: entry["recipe"][name] for name in SEARCHED}
    build(Recipe, fields)  # refuses what no recipe may have
    there = entry["tuned_for"]
    conditions = {"kind": "binding", **there, "options": dict(there["options"]), "steps": entry["recipe"]["steps"]}
    return Tuned(str(entry["architecture"]), fields, dict(entry.get("options", {})), conditions)

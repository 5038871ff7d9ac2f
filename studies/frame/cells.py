"""The training run of a model on a split: its towers, recipe (the study's, tuned, or its paper's) and options."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.identity import changed_fields
from menagerie.envs.core.reading import LARGEST_RECORD, check_shape, parse_json, read_text
from menagerie.envs.core.records import unseal
from menagerie.envs.core.validation import build_dataclass
from menagerie.generators.parsers.graph_source import GraphSource, parser_digest
from menagerie.models.recipe import Recipe
from menagerie.models.registry import short_name, spec_of
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.frame.options import ModelOptions, SplitOptions
from menagerie.studies.runs.cell import Cell, own_files
from menagerie.studies.runs.data import CellData

# `--tuned paper`: each model's recipe is its paper's.
PAPER_RECIPES = "paper"

# What tuning searches beside the towers; all else of a recipe is the study's own.
SEARCHED = ("learning_rate", "weight_decay", "warmup", "singles_share", "single_object_phase")
# The fields of a recipe that a paper decides. Steps, batch and data are the study's, the same for all models.
PAPER_FIELDS = (
    *("learning_rate", "vision_learning_rate", "text_learning_rate", "warmup", "vision_warmup", "text_warmup"),
    *("weight_decay", "betas"),
)
SHIPPED = Path(__file__).parents[1] / "recipes"


class Tuned(NamedTuple):
    """The recipe that tuning chose for one model, and the conditions of the search."""

    architecture: str
    fields: dict[str, Any]
    options: dict[str, Any]
    """The model's own options, where they were searched too."""
    conditions: dict[str, Any]


def read_tuned(name: str, models: Sequence[str]) -> dict[str, Tuned]:
    """Read the tuned recipes that a file has for some of `models`; raises if it has none of them."""
    recipes = read_recipes(name)
    if not (chosen := {model: recipes[model] for model in models if model in recipes}):
        raise UserError(
            f"--tuned {name} has recipes for {', '.join(recipes)}, not for {', '.join(models)}; "
            "--tuned '' trains all models alike, --tuned FILE takes the best.json that studies/tune.py writes for them"
        )
    return chosen


def shipped_recipes() -> dict[str, list[str]]:
    """List the models of each shipped file of tuned recipes, by its name for `--tuned`."""
    return {file.stem: list(read_recipes(file.stem)) for file in sorted(SHIPPED.glob("*.json"))}


def read_recipes(name: str) -> dict[str, Tuned]:
    """Read a file of tuned recipes, by model: `name` itself if it ends in .json, else the shipped file of that name."""
    path = Path(name)
    if not name.endswith(".json"):
        shipped = sorted(file.stem for file in SHIPPED.glob("*.json"))
        path = SHIPPED / f"{choose('recipes for --tuned', name, shipped)}.json"
    try:
        # A file that a user wrote or edited has no digest.
        text, tables = read_text(path, LARGEST_RECORD), dict[str, dict[str, Any]]
        content = parse_json(text, path)
        file = unseal(text, path, shape=tables) if "digest" in content else check_shape(content, tables, path)
        return {model: read_model(entry) for model, entry in file.items() if model != "digest"}
    except (OSError, ValueError, KeyError, TypeError, UserError) as error:
        way_out = "give what studies/tune.py writes, without 'digest' where you edited it"
        raise UserError(f"--tuned {name}: {path} can't be read ({error}); {way_out}") from error


def read_model(entry: dict[str, Any]) -> Tuned:
    build_dataclass(Recipe, entry["recipe"])  # refuses what no recipe may have, and what is no field of one
    fields = {name: entry["recipe"][name] for name in SEARCHED}
    there = entry["tuned_for"]
    conditions = {"kind": "binding", **there, "options": dict(there["options"]), "steps": entry["recipe"]["steps"]}
    return Tuned(str(entry["architecture"]), fields, dict(entry.get("options", {})), conditions)


@lru_cache(maxsize=8)
def tuned_recipes(study: SplitOptions) -> dict[str, Tuned]:
    return read_tuned(study.tuned, study.models) if study.tuned not in ("", PAPER_RECIPES) else {}


def tuning_conditions(study: SplitOptions, model: str) -> dict[str, Any]:
    its = {name: getattr(study, name) for name in ("kind", "world", "resolution")}
    return its | {"options": study.scorers.of(model)}


def untuned_models(study: SplitOptions) -> list[str]:
    """List the models without a tuned recipe; empty if no model of the study has one."""
    return [model for model in study.models if tuned_recipes(study) and model not in tuned_recipes(study)]


def towers(study: SplitOptions, model: str) -> TowerConfig:
    """Return the towers of a model, with the architecture that tuning chose for it or, if that of the study is the
    default, for all other models."""
    best, theirs = tuned_recipes(study).get(model), {recipe.architecture for recipe in tuned_recipes(study).values()}
    architecture = best.architecture if best else study.architecture
    if not best and len(theirs) == 1 and architecture == ModelOptions.architecture:
        architecture = theirs.pop()
    return TowerConfig(architecture, study.pretrained, study.resolution, study.tokenizer)


def training_recipe(study: SplitOptions, model: str) -> Recipe:
    """Return the training recipe of a model: the study's, with the fields that were tuned for the model or, on request
    or with pretrained weights, those of its paper, else their defaults."""
    if model in tuned_recipes(study):
        return replace(study.recipe, **tuned_recipes(study)[model].fields)
    spec, plain = spec_of(model), Recipe()
    paper = spec.pretrained if study.pretrained else spec.scratch if study.tuned == PAPER_RECIPES else {}
    if not paper:
        return study.recipe
    return replace(study.recipe, **{name: paper.get(name, getattr(plain, name)) for name in PAPER_FIELDS})


def recipe_line(study: SplitOptions, model: str, recipe: Recipe | None = None) -> str:
    """Write a model's recipe (its own, or the given one), its options, and what it was tuned for, in a line."""
    start = f"from {study.pretrained}" if study.pretrained else "from scratch"
    recipe = recipe or training_recipe(study, model)
    named = ", ".join(f"{name} {value}" for name, value in asdict(recipe).items() if value is not None)
    text = f"{towers(study, model).architecture} {start}; {named}"
    text += "; too few steps for the warm-up to end" * (recipe.longest_warmup >= recipe.steps)
    options = asdict(spec_of(model).make_config(model_options(study, model))).items()
    said = [f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in options]
    text += "; " * bool(said) + ", ".join(said)
    if study.tuned in ("", PAPER_RECIPES):
        return text + " (its paper's)" * bool(study.tuned)
    if model not in tuned_recipes(study):
        return f"{text} (not tuned)"
    there = tuned_recipes(study)[model].conditions
    here = tuning_conditions(study, model) | {"steps": study.recipe.steps}
    others = [f"{name} {there.get(name)}, not {value}" for name, value in here.items() if there.get(name) != value]
    return f"{text} (tuned with {'; '.join(others)})" if others else f"{text} (tuned)"


def model_options(study: SplitOptions, model: str) -> dict[str, Any]:
    """Return the model's options that differ from their defaults, as the study or tuning set them."""
    best, config = tuned_recipes(study).get(model), study.scorers.config(model)
    return changed_fields(replace(config, **best.options)) if best else changed_fields(config)


parser_hash = lru_cache(maxsize=8)(parser_digest)  # opening a parser may take seconds


def cell_of(study: SplitOptions, model: str, data: CellData, seed: int) -> Cell:
    """Return the training run of a model on a split. Its base is the run of the stage before its model, if it has one,
    on the model's towers, with the recipe of the stage's model or the one tuned for both together."""
    spec, base = spec_of(model), None
    if spec.stage:
        base = replace(cell_of(study, spec.stage.scorer, data, seed), towers=towers(study, model), options={})
        if model in tuned_recipes(study):
            base = replace(base, recipe=training_recipe(study, model))
    graphs = study.graph_source if "graphs" in spec.reads else GraphSource()
    return Cell(
        **{"model": model, "seed": seed, "data": data, "towers": towers(study, model), "negatives": spec.negatives},
        **{"recipe": training_recipe(study, model), "options": model_options(study, model)},
        **{"device": study.device, "threads": study.threads, "files": own_files(model, study.pretrained)},
        **{"base": base, "graphs": graphs, "parser": parser_hash(graphs.graphs)},
    )


def place_line(study: SplitOptions, place: Mapping[str, Any]) -> str:
    """Describe a place of a study in words: its world, resolution and kind of split, and its value of each axis."""
    texts = {name: f"{value:.0%}" if isinstance(value, float) else str(value) for name, value in place.items()}
    named = ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in texts.items())
    return f"world {study.world}, {study.resolution} px, {study.kind} split, {named}"


def title_of(model: str) -> str:
    """Return a model's name in sentences of reports: its title or, without one, its name in tables."""
    return spec_of(model).title or short_name(model)

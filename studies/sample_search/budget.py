"""A setting: how much data and of which kind. What searches choose; free of torch and Optuna."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from menagerie.envs.core.options import DATA, FIRST, PLACE, TRAINING, WHAT
from menagerie.envs.core.validation import FIRST_SEED, RUNS, SHARE, Several
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import PairCounts, SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of
from menagerie.studies.frame.cells import cell_of as grid_cell
from menagerie.studies.frame.cells import training_recipe, tuned
from menagerie.studies.frame.grid import Grid
from menagerie.studies.runs.cell import Cell, Execution, Job
from menagerie.studies.runs.data import FRACTIONS, SplitData

if TYPE_CHECKING:
    from menagerie.generators.storage.image_store import ImageStore


@dataclass(frozen=True)
class Config(Grid):
    """One study of sample efficiency."""

    title: ClassVar[str] = "Sample efficiency: how little data is enough"
    searched: ClassVar[frozenset[str]] = frozenset(FRACTIONS)

    pairs: tuple[float, ...] = (0.0, 1.0)
    """Least and most of the trainable animal pairs in training; one value leaves nothing to search."""
    hard_negatives: tuple[float, ...] = (0.0, 1.0)
    """Least and most of the training pairs that also have their hard negatives."""
    singles_shares: Annotated[tuple[float, ...], WHAT, SHARE, Several(1)] = (0.2, 0.8)
    """Least and most share of a batch that shows one animal alone; replaces `singles_share`."""
    views: int = 8
    """Views of each training scene of two, and the most views of a lone animal (the least is 1)."""
    reserve: Annotated[float, DATA, SHARE] = 0.1
    """Share of all pairs that no setting trains on: the test."""
    validation: Annotated[float, DATA, SHARE] = 0.1
    """Share of all pairs kept for validation, by which settings are judged."""
    seeds: int = 3
    """Seeds of each setting. Its median counts, with `budgets` its mean. Each seed decides what is drawn."""
    trials: Annotated[int, WHAT, FIRST, RUNS] = 12
    """Settings that each search tries for each model."""
    target: Annotated[float, WHAT, FIRST] = 0.95
    """Accuracy that the second search wants to reach."""
    storage: Annotated[str, PLACE] = ""
    """Where trials are kept: a journal file, or the URL of a database (postgresql+psycopg://...) for workers
    on many machines; empty takes journal.log in the folder of the results."""
    study: Annotated[str, PLACE] = ""
    """Name of the study in its storage; empty takes sample_efficiency-PRESET."""
    sampler_seed: Annotated[int, WHAT, FIRST_SEED] = 0
    """Seed of what the searches draw."""
    budgets: Annotated[tuple[int, ...], TRAINING, FIRST] = ()
    """Steps, more until validation stops. They rise from `steps`; empty: `steps` alone."""
    patience: Annotated[int, TRAINING, RUNS] = 1
    """Budgets in a row without a rise of validation, the mean over seeds, after which a setting gets no larger one."""
    rise: Annotated[float, TRAINING, SHARE] = 0.01
    """The least rise that counts, as a share: 0.01 is a point. One that lacks less to 100 % gets no larger one."""


@dataclass(frozen=True)
class Setting:
    """One point of the space that is searched."""

    pairs: float
    """Fraction of the trainable animal pairs in train."""
    hard_negatives: float
    """Fraction of those that also have their hard negatives."""
    singles_views: int
    """Views of each lone animal."""
    singles_share: float
    """Share of a batch that shows one animal alone."""


def setting_of(config: Config, params: Mapping[str, Any]) -> Setting:
    """The setting of a trial's parameters, with fractions as they come out in whole pairs: the same data
    has one name, and is trained on once."""
    requested = Setting(**{name: params[name] for name in Setting.__dataclass_fields__})
    counts = counts_of(split_recipe(config, requested, seed=0))
    swapped = counts.swapped / counts.train if counts.train else 0.0
    return replace(requested, pairs=counts.train / counts.trainable, hard_negatives=swapped)


def split_recipe(config: Config, setting: Setting, seed: int) -> SplitRecipe:
    plain = config.split_of(seed, pairs=setting.pairs, hard_negatives=setting.hard_negatives)
    return replace(plain, singles_views=setting.singles_views)


@lru_cache(maxsize=4096)
def counts_of(recipe: SplitRecipe) -> PairCounts:
    """How many pairs the fractions of a recipe come to."""
    return recipe.counts()


@lru_cache(maxsize=4096)
def distinct_images(recipe: SplitRecipe) -> int:
    """How many different images train holds, single-object scenes counted: a scene in one view is one image.

    What the split file says too, but without making it.
    """
    if not isinstance(recipe, BindingRecipe) or recipe.hold_out:
        return len(set(recipe.subsets()["train"]))
    world, counts = load_world(recipe.world), counts_of(replace(recipe, singles_views=0))
    lone = sum(1 for _ in world.singles()) * (recipe.singles_views or recipe.views)
    orders = 2  # left and right
    return lone + (counts.train + counts.swapped) * orders * len(world.backgrounds) * recipe.views


def images_of(config: Config, setting: Setting) -> int:
    """The distinct training images of a setting; the same for all seeds."""
    return distinct_images(split_recipe(config, setting, seed=0))


def images_seen(config: Config, model: str, steps: int = 0) -> int:
    """Images of all steps of a run, those of the stage that it starts from among them; 0: of the study's steps."""
    stage = spec_of(model).stage
    seen = (steps or config.recipe.steps) * config.recipe.batch
    return seen + (images_seen(config, stage.scorer, steps) if stage else 0)


def equal_steps(config: Config) -> int:
    """The largest budget that every run is trained for, whatever its validation does."""
    return config.budgets[min(config.patience, len(config.budgets) - 1)]


def everything(config: Config) -> Setting:
    """The setting with most data."""
    return Setting(max(config.pairs), max(config.hard_negatives), config.views, statistics.mean(config.singles_shares))


def least(config: Config) -> Setting:
    """The setting with least data."""
    return Setting(min(config.pairs), min(config.hard_negatives), 1, statistics.mean(config.singles_shares))


def recipe_of(config: Config, model: str, singles_share: float | None, steps: int = 0) -> Recipe:
    """The training recipe of a model: the study's, or the tuned one, whose warm-up keeps its share of the steps.

    A larger budget of `steps` has the same first ones: the warm-up and the phase of lone animals stay as long.
    """
    recipe = replace(training_recipe(config, model), singles_share=singles_share)
    if model in tuned(config):
        warmup = round(recipe.warmup * recipe.steps / tuned(config)[model].conditions["steps"])
        recipe = replace(recipe, warmup=warmup)
    if not steps:
        return recipe
    return replace(recipe, steps=steps, single_object_phase=recipe.single_object_phase * recipe.steps / steps)


def cell_of(config: Config, identity: str, model: str, setting: Setting, seed: int, steps: int = 0) -> Cell:
    """The training run of a model in a setting, of the study's steps or of one of its budgets."""
    recipe = split_recipe(config, setting, seed)
    cell = grid_cell(config, model, SplitData(recipe, identity), recipe.seed)
    trained = recipe_of(config, model, setting.singles_share, steps)
    if cell.base is None:
        return replace(cell, recipe=trained)
    before = trained if model in tuned(config) else recipe_of(config, cell.base.model, setting.singles_share, steps)
    return replace(cell, recipe=trained, base=replace(cell.base, recipe=before))


def job_of(store: "ImageStore", cell: Cell, out: Path, execution: Execution) -> Job:
    """The cell with its split file, whose images are rendered where they are missing."""
    from menagerie.generators.storage.split_file import make_split

    store.add(cell.data.recipe.scenes_to_render())
    return Job(cell, make_split(store, cell.data.recipe), out, execution=execution)


def over_seeds(config: Config, values: Sequence[float]) -> float:
    """What a setting is judged by: the median over seeds, which one lucky seed of three does not move; of settings that
    are trained until they stop rising the mean, of which there is an interval for new seeds."""
    return float((statistics.mean if config.budgets else statistics.median)(values))


def out_of_reach(config: Config, values: Sequence[float]) -> bool:
    """Whether `over_seeds` will miss the target, whatever the seeds get that are still to come."""
    return over_seeds(config, [*values, *[1.0] * (config.seeds - len(values))]) < config.target


def within_reach(config: Config, values: Sequence[float]) -> bool:
    """Whether `over_seeds` will reach the target, whatever the seeds get that are still to come."""
    return over_seeds(config, [*values, *[0.0] * (config.seeds - len(values))]) >= config.target

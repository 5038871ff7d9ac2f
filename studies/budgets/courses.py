"""What is trained in a study of compute, and what comes next: choices are halved on validation, then budgets rise.

A run is one of a model's choices (towers, batch, rate) on a split with a seed and a budget of steps. Halving is
successive halving (Jamieson & Talwalkar 2016): a choice that goes on is trained on from where it was, so a round costs
about as much as the one before. Budgets of the choice that is left rise until validation doesn't. Free of torch.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, NamedTuple

import tyro

from menagerie.envs.core.options import DATA, FIRST, MODEL, TRAINING, WHAT
from menagerie.envs.core.validation import RATE, RUNS, SEEDS, SHARE, STEPS, Range
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.cells import cell_of
from menagerie.studies.frame.grid import Grid
from menagerie.studies.grids.grid import data_of
from menagerie.studies.runs.cell import Cell, Execution, Job
from menagerie.studies.runs.command_line import RunOptions, ScorerOptions, scorer_options
from menagerie.studies.runs.data import CellData
from menagerie.studies.runs.results import finished


@dataclass(frozen=True)
class Config(RunOptions):
    """One study of compute."""

    models: Annotated[tuple[str, ...], WHAT, FIRST] = ("clip", "negclip", "oc-clip")
    """Scorers by name, or FILE.py:Class of your own; the question is about the first."""
    splits: Annotated[tuple[str, ...], DATA, FIRST] = ("binding", "spatial")
    """Grids whose hardest cell is trained on: binding, spatial; --recipe takes their place."""
    cell: Annotated[str, DATA, FIRST] = "breadth"
    """Preset of the two grids whose hardest cell is trained: its world, resolution and pairs."""
    base: Annotated[SplitRecipe | None, tyro.conf.Fixed, tyro.conf.Suppress] = None
    """The recipe that `--recipe` names."""
    budgets: Annotated[tuple[int, ...], WHAT, FIRST, STEPS] = (500, 1000, 2000, 4000, 6000)
    """Optimiser steps, rising; at each there is a finished model."""
    patience: Annotated[int, WHAT, FIRST, RUNS] = 2
    """Budgets in a row without a rise of validation, mean over seeds, after which a model that left chance stops."""
    rise: Annotated[float, WHAT, Range(0.0, 1.0)] = 0.005
    """The least rise that counts, as a share: 0.005 is half a point."""
    bar: Annotated[float, WHAT, Range(0.5, 1.0)] = 0.95
    """Accuracy on what is unseen from which on a model counts as one that binds."""
    seeds: Annotated[int, WHAT, FIRST, SEEDS] = 3
    """Number of seeds, from 0, each of which decides split and training; towers and rates are chosen with the first."""
    architectures: Annotated[tuple[str, ...], MODEL, FIRST] = ("mini",)
    """Towers to choose from: nano, micro, mini, broad, small, or any open_clip architecture."""
    scorers: Annotated[ScorerOptions, tyro.conf.arg(name=""), MODEL] = field(
        default_factory=partial(scorer_options, "small")
    )
    """What is specific to each model, in the sizes for small towers."""
    learning_rates: Annotated[tuple[float, ...], TRAINING, FIRST, RATE] = (2e-4, 6e-4, 1.8e-3, 5.4e-3)
    """Peak learning rates to choose from. CLIP's best trial of `tune` stood at 7e-4."""
    batches: Annotated[tuple[int, ...], TRAINING, FIRST, Range(2, 10**6)] = (64,)
    """Images of a step to choose from."""
    warmup: Annotated[int, TRAINING, Range(0, STEPS.high)] = 100
    """Steps of linear warm-up."""
    decay: Annotated[float, TRAINING, Range(0.0, 1.0)] = 0.2
    """Share of the steps, the last ones, in which the rate falls to zero."""
    weight_decay: Annotated[float, TRAINING] = 0.05
    """Decoupled weight decay."""
    singles_share: Annotated[float, TRAINING, SHARE] = 0.5
    """Share of a batch that shows one animal alone."""
    singles_steps: Annotated[int, TRAINING, Range(0, STEPS.high)] = 250
    """First steps, which show lone animals only; the same in all budgets."""
    dry_run: Annotated[bool, WHAT, FIRST] = False
    """Only report what would be rendered and trained, and how long it takes at most."""

    def with_recipe(self, recipe: SplitRecipe) -> "Config":
        """The study on the split of a recipe of the user's."""
        return replace(self, base=recipe)


class Setup(NamedTuple):
    """One choice for a model, the same for all its budgets."""

    model: str
    architecture: str
    batch: int
    learning_rate: float

    def __str__(self) -> str:
        return f"{self.architecture}, batch {self.batch}, rate {self.learning_rate:g}"


class Run(NamedTuple):
    """One training run."""

    split: str
    setup: Setup
    seed: int
    steps: int


def setups_of(config: Config, model: str) -> list[Setup]:
    choices = product(config.architectures, config.batches, config.learning_rates)
    return [Setup(model, *choice) for choice in choices]


def recipe_of(config: Config, setup: Setup, steps: int) -> Recipe:
    """The training recipe of a choice and a budget."""
    return Recipe(
        steps=steps,
        batch=setup.batch,
        learning_rate=setup.learning_rate,
        warmup=config.warmup,
        decay=config.decay,
        weight_decay=config.weight_decay,
        singles_share=config.singles_share,
        single_object_phase=config.singles_steps / steps,
    )


@dataclass(frozen=True)
class Trained:
    """Turns runs into jobs: the grid of each split, the data of each of its seeds, and the study's folder."""

    config: Config
    grids: Mapping[str, Grid]
    identities: Mapping[str, str]
    """The identity of each split's image store."""
    files: Mapping[CellData, Path]
    out: Path

    def job(self, run: Run) -> Job:
        """The cell of a run with its split file."""
        grid = self.grids[run.split]
        data, seed = data_of(grid, self.identities[run.split])[run.seed]
        cell = cell_for(self.config, grid, run, data, seed)
        return Job(cell, self.files[data], self.out, f"{run.split}, {run.steps} steps", Execution.of(grid))


def cell_for(config: Config, grid: Grid, run: Run, data: CellData, seed: int) -> Cell:
    """The cell of a run on some data."""
    recipe = recipe_of(config, run.setup, run.steps)
    varied = replace(grid, architecture=run.setup.architecture, recipe=recipe)
    return cell_of(varied, run.setup.model, data, seed)


# Accuracy on validation below which a model is about at chance.
BEGUN = 0.6

# Accuracy on validation of what is trained; 0 of a run whose loss is no number.
Known = Mapping[Run, float]


class Course(NamedTuple):
    """The state of a model's training at one split."""

    setup: Setup | None
    """The choices that were made for the model; None while they are halved."""
    validation: tuple[float, ...]
    """For each budget whose seeds are all trained, the mean accuracy on validation over seeds."""
    missing: tuple[Run, ...]
    """The runs to be trained next; none where the model is done."""
    stopped: bool
    """Whether validation has stopped rising: no larger budget would be trained."""


def course_of(config: Config, known: Known, split: str, model: str) -> Course:
    """The state of a model's training at a split, judged by the known accuracies on validation."""
    left = setups_of(config, model)
    for steps in config.budgets:
        if len(left) == 1:
            break
        runs = [Run(split, setup, 0, steps) for setup in left]
        if missing := [run for run in runs if run not in known]:
            return Course(None, (), tuple(missing), False)
        left = best_half(left, [known[run] for run in runs])
    return rising(config, known, split, left[0])


def best_half(setups: Sequence[Setup], accuracies: Sequence[float]) -> list[Setup]:
    """The better half, rounded up, of which the best is first; of equal ones those that came first."""
    order = sorted(range(len(setups)), key=lambda k: -accuracies[k])
    return [setups[k] for k in order[: -(-len(setups) // 2)]]


def rising(config: Config, known: Known, split: str, setup: Setup) -> Course:
    """The course of the one choice that is left: each budget with all seeds."""
    means: list[float] = []
    for steps in config.budgets:
        runs = [Run(split, setup, seed, steps) for seed in range(config.seeds)]
        if missing := [run for run in runs if run not in known]:
            return Course(setup, tuple(means), tuple(missing), False)
        means.append(statistics.mean(known[run] for run in runs))
        if has_stopped(means, config.patience, config.rise):
            return Course(setup, tuple(means), (), True)
    return Course(setup, tuple(means), (), False)


def has_stopped(means: Sequence[float], patience: int, rise: float) -> bool:
    """Whether none of the last `patience` values is above the best before them by more than `rise`.

    Never of a model that has not left chance yet: it may not have begun to rise.
    """
    if len(means) <= patience or max(means) < BEGUN:
        return False
    return max(means[-patience:]) <= max(means[:-patience]) + rise


def next_runs(config: Config, known: Known, splits: Sequence[str]) -> list[Run]:
    """The runs that can be trained now, the longest first: for each model at each split those of one budget."""
    courses = [course_of(config, known, split, model) for split in splits for model in config.models]
    return sorted((run for course in courses for run in course.missing), key=lambda run: -run.steps)


def known_of(trained: Trained) -> Known:
    """Accuracy on validation of every run that ended, 0 of those whose loss is no number.

    Of the budgets of one choice and seed none is known after the first that has not ended.
    """
    config, known = trained.config, {}
    for split, model in product(trained.grids, config.models):
        for setup, seed in product(setups_of(config, model), range(config.seeds)):
            for steps in config.budgets:
                run = Run(split, setup, seed, steps)
                if (value := validation_of(trained.job(run))) is None:
                    break
                known[run] = value
    return known


def validation_of(job: Job) -> float | None:
    """Accuracy on validation of a run that ended; None of one that hasn't."""
    result = finished(job.folder)
    if result is not None:
        return float(result["subsets"]["validation"]["swap"]["accuracy"])
    return 0.0 if job.problem else None


def courses_of(trained: Trained) -> dict[tuple[str, str], Course]:
    """The state of each model's training at each split."""
    known = known_of(trained)
    return {
        (split, model): course_of(trained.config, known, split, model)
        for split in trained.grids
        for model in trained.config.models
    }

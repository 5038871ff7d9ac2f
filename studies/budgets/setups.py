"""What is trained: towers, batch and rate of each model, by split, seed and budget of steps. Free of torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from menagerie.models.recipe import Recipe
from menagerie.studies.grids.cells import cell_of, data_of
from menagerie.studies.grids.grid import Grid
from menagerie.studies.runs.cell import Cell, Execution, Job
from menagerie.studies.runs.data import CellData


@runtime_checkable
class Study(Protocol):
    """The configuration of a study of compute: the fields of `studies/compute.py`."""

    models: tuple[str, ...]
    budgets: tuple[int, ...]
    patience: int
    rise: float
    bar: float
    seeds: int
    architectures: tuple[str, ...]
    learning_rates: tuple[float, ...]
    batches: tuple[int, ...]
    warmup: int
    decay: float
    weight_decay: float
    singles_share: float
    singles_steps: int


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


def setups_of(config: Study, model: str) -> list[Setup]:
    """All choices for a model."""
    choices = product(config.architectures, config.batches, config.learning_rates)
    return [Setup(model, *choice) for choice in choices]


def recipe_of(config: Study, setup: Setup, steps: int) -> Recipe:
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

    config: Study
    grids: Mapping[str, Grid]
    identities: Mapping[str, str]
    """Of the image store, by split."""
    files: Mapping[CellData, Path]
    out: Path

    def job(self, run: Run) -> Job:
        """The cell of a run with its split file."""
        grid = self.grids[run.split]
        data, seed = data_of(grid, self.identities[run.split])[run.seed]
        cell = cell_for(self.config, grid, run, data, seed)
        return Job(cell, self.files[data], self.out, f"{run.split}, {run.steps} steps", Execution.of(grid))


def cell_for(config: Study, grid: Grid, run: Run, data: CellData, seed: int) -> Cell:
    """The cell of a run on some data."""
    recipe = recipe_of(config, run.setup, run.steps)
    own = replace(grid, architecture=run.setup.architecture, recipe=recipe)
    return cell_of(own, run.setup.model, data, seed)

"""The splits, data and cells of a grid, for tests of how they are run."""

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from menagerie.envs.worlds import load_world
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.studies.frame.cells import cell_of
from menagerie.studies.frame.grids import Grid
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.command_line import only_models
from menagerie.studies.runs.data import FRACTIONS, CellData, SplitData
from menagerie.studies.runs.results import read_result

AnyGrid = TypeVar("AnyGrid", bound=Grid)
VARYING = ("seconds", "provenance", "digest")  # of a result


def cell_output(folder: Path, timed: int = 2) -> tuple[dict[str, Any], bytes, bytes, list[str]]:
    """What a finished cell holds that must not depend on how it was made: its result, weights, predictions, and its log
    without so many last columns."""
    result = {name: value for name, value in (read_result(folder) or {}).items() if name not in VARYING}
    log = [line.rsplit(",", timed)[0] for line in (folder / "training.csv").read_text().splitlines()]
    weights = (folder / "checkpoint" / "model.safetensors").read_bytes()
    return result, weights, (folder / "predictions.csv").read_bytes(), log


def chosen_alone(grid: AnyGrid) -> AnyGrid:
    """The grid with the options of its own models only."""
    return replace(grid, scorers=only_models(grid.scorers, grid.models))


def splits(grid: Grid) -> list[SplitRecipe]:
    """The recipes of all splits of the grid, in its order; none where files take their place."""
    if grid.split:
        return []
    return [grid.split_of(seed, **place) for seed in range(grid.seeds) for place in grid.places]


def data_of(grid: Grid, store_identity: str) -> list[tuple[CellData, int]]:
    """The training data and the seed of each cell, by place and seed."""
    if grid.split:
        return [(data, data.seed + seed) for seed in range(grid.seeds) for data in grid.files]
    further = tuple(name for name in grid.axes if name not in FRACTIONS)
    return [(SplitData(recipe, store_identity, further), recipe.seed) for recipe in splits(grid)]


def cells(grid: Grid, store_identity: str) -> list[Cell]:
    """All cells of the grid."""
    return [cell_of(grid, model, *pair) for pair in data_of(grid, store_identity) for model in grid.models]


def render(grid: Grid, workers: int) -> tuple[str, dict[CellData, Path]]:
    """Write the split files, unless the grid names its own; returns the identity of their folder, and each file."""
    if grid.split:
        return "", dict(grid.files)
    from menagerie.generators.storage.folder import SplitFolder
    from menagerie.studies.runs.data import make_splits

    store = SplitFolder(grid.store, load_world(grid.world), grid.resolution)
    files = make_splits(store, splits(grid), workers)
    return store.identity, {data: files[data.recipe] for data, _ in data_of(grid, store.identity)}

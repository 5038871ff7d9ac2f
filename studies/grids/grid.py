"""What grids share: a training run per model, place (fraction of pairs, of hard negatives, ...) and seed.

A grid is a subclass of `Grid` that names the recipe of its splits (`plain_recipe`), with presets: see
`studies/binding_grid.py`. `--recipe` puts a recipe of the user's in its place, of any kind, and `--split` a file.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, TypeVar

from menagerie.envs.core.validation import SHARE
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.studies.frame.arm import Arm, Known
from menagerie.studies.frame.cells import cell_of
from menagerie.studies.frame.options import Axis
from menagerie.studies.frame.study import SplitStudy, grid
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.command_line import only
from menagerie.studies.runs.data import FRACTIONS, CellData, SplitData

AnyGrid = TypeVar("AnyGrid", bound="Grid")


@dataclass(frozen=True)
class Grid(SplitStudy):
    """The options of every grid."""

    pairs: Annotated[Axis[float], SHARE] = (0.2, 0.8)
    """Fractions of the trainable animal pairs."""
    hard_negatives: Annotated[Axis[float], SHARE] = (0.0, 1.0)
    """Fractions of these pairs that have hard negatives too."""

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """The fields of the recipe that are varied, with their values."""
        return {name: getattr(self, name) for name in FRACTIONS}

    @property
    def tests(self) -> tuple[str, ...]:
        """The test subsets, in the report's order."""
        if self.split:
            return tuple(dict.fromkeys(test for data in self.files for test in data.tests))
        return self.split_of(0, **self.places[0]).all_tests  # as at all places

    @property
    def places(self) -> list[dict[str, Any]]:
        """The places of the grid by axis, in its order."""
        if self.split:
            return [data.axes for data in self.files]
        return [dict(zip(self.axes, values, strict=True)) for values in product(*self.axes.values())]

    @property
    def task(self) -> str:
        """The kind of false caption that a model must reject, for the report."""
        return self._kind.task

    @property
    def title(self) -> str:
        """What the grid measures, in a few words."""
        return self._kind.title

    @property
    def unseen(self) -> tuple[str, ...]:
        """The tests on what no cell trains on: of hold-out rules, of unseen pairs, or of what else is unseen."""
        unseen = tuple(test for test in self.tests if test.endswith("unseen_pairs") or test.startswith(HELD_OUT))
        return unseen or tuple(test for test in self.tests if "unseen" in test)

    @property
    def _kind(self) -> type[SplitRecipe]:
        from menagerie.generators.splits.recipe_file import KINDS

        return KINDS[self.kind]

    def plan(self, known: Known) -> Iterable[Arm]:
        """Every model at every place."""
        return grid(self, **self.axes)

    def page(self, records: Any) -> Iterable[Any]:
        """The parts of the report."""
        return ()


def chosen_alone(grid: AnyGrid) -> AnyGrid:
    """The grid with the options of its own models only."""
    return replace(grid, scorers=only(grid.scorers, grid.models))


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
    """All cells of the grid; the hardest come first, so that a stopped grid has reported something."""
    return [cell_of(grid, model, *pair) for pair in data_of(grid, store_identity) for model in grid.models]


def cell_line(grid: Grid) -> str:
    """Describe the first place of a grid in words: its world, its resolution and its shares of pairs."""
    values = {
        name: f"{value:.0%}" if isinstance(value, float) else str(value) for name, value in grid.places[0].items()
    }
    place = ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in values.items())
    return f"world {grid.world}, {grid.resolution} px, {grid.kind} split, {place}"

"""The hardest cells of both grids: the options of studies that train there, and the grids reduced to such a cell."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import tyro

from menagerie.envs.core.errors import choose
from menagerie.envs.core.options import DATA, FIRST
from menagerie.envs.core.validation import Several
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.studies import binding_grid, spatial_grid
from menagerie.studies.frame.grids import Grid
from menagerie.studies.frame.study import Study

GRIDS: Mapping[str, Mapping[str, Grid]] = {"spatial": spatial_grid.PRESETS, "binding": binding_grid.PRESETS}


@dataclass(frozen=True)
class HardestCells(Study):
    """A study at the hardest cells of both grids"""

    splits: Annotated[tuple[str, ...], DATA, FIRST, Several(least=1)] = tuple(GRIDS)
    """Grids whose hardest cell is trained: spatial, binding. A recipe of yours takes their place."""
    cell: Annotated[str, DATA, FIRST] = "laptop"
    """Preset of binding_grid.py and spatial_grid.py whose hardest cell is trained: its world, resolution and pairs."""
    base: Annotated[SplitRecipe | None, tyro.conf.Fixed, tyro.conf.Suppress] = None
    """The recipe that `--recipe` names."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the splits."""
        return ("own",) if self.base else self.splits

    def with_recipe(self, recipe: SplitRecipe) -> "HardestCells":
        return replace(self, base=recipe)

    def hardest(self, split: str) -> Grid:
        """Return the grid of a split, reduced to its hardest cell or to the user's recipe."""
        own = "spatial" if self.base and self.base.relational else "binding"
        presets = GRIDS[own if split == "own" else choose("split", split, GRIDS)]
        grid = presets[choose("preset of the grids", self.cell, presets)]
        alike = {name: getattr(self, name) for name in ("store", "device", "threads", "models")}
        return self.narrow(replace(grid, **alike))

    def narrow(self, grid: Grid) -> Grid:
        """Reduce a grid to one cell."""
        if self.base:
            return grid.with_recipe(self.base)
        return replace(grid, pairs=(min(grid.pairs),), hard_negatives=(0.0,))

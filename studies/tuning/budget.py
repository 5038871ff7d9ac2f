"""The parameters that a model has on the towers and with the options that a search gives it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from menagerie.studies.grids.cells import towers
from menagerie.studies.grids.grid import Grid


def parameters(grid: Grid, model: str, architecture: str, options: Mapping[str, Any] | None = None) -> int:
    """Their number, with options of the model's own in place of the grid's."""
    from menagerie.models.contract import build

    own = towers(replace(grid, architecture=architecture), model)
    scorer = build(model, own, grid.scorers.of(model) | dict(options or {}))
    return sum(parameter.numel() for parameter in scorer.parameters())

"""How many parameters a run's scorer has, counted before it is trained."""

from collections.abc import Mapping
from typing import Any

from menagerie.envs.core.identity import digest
from menagerie.envs.core.processes import in_child
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.machine import start_server

SIZES: dict[str, int] = {}


def size_of(cell: Cell) -> int:
    """The number of parameters, counted once for each of a model's sizes, in a process of its own."""
    key = digest([cell.model, cell.files, str(cell.towers), cell.options])
    if key not in SIZES:
        start_server(cell.threads)
        SIZES[key] = in_child(parameters, cell.model, cell.towers, cell.options)
    return SIZES[key]


def parameters(model: str, towers: TowerConfig, options: Mapping[str, Any]) -> int:
    """The number of a scorer's parameters. Imports torch."""
    from menagerie.models.contract import build

    return sum(parameter.numel() for parameter in build(model, towers, options).parameters())

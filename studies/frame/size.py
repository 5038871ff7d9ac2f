"""How many parameters a run's scorer has, counted before it is trained."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from menagerie.envs.core.processes import in_child
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.machine import start_server


def size_of(cell: Cell) -> int:
    """The number of parameters, counted once for each of a model's sizes, in a process of its own."""
    start_server(cell.threads)
    return counted(cell.model, cell.towers, json.dumps(cell.options, sort_keys=True))


@cache
def counted(model: str, towers: TowerConfig, options: str) -> int:
    """The number of parameters; options as JSON."""
    return in_child(parameters, model, towers, json.loads(options))


def parameters(model: str, towers: TowerConfig, options: Mapping[str, Any]) -> int:
    """The number of a scorer's parameters. Imports torch."""
    from menagerie.models.contract import build

    return sum(parameter.numel() for parameter in build(model, towers, options).parameters())

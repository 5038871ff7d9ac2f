"""Counts and times what a run costs: parameters, images seen, floating-point operations, processor time."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.identity import digest
from menagerie.envs.core.processes import call_in_child
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.records import read_cell_result
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.machine import start_server

UNKNOWN = "–"
SAMPLES = 3  # steps that are counted of each phase: texts differ from batch to batch
_STEP_FLOPS: dict[str, tuple[float, float]] = {}
_SIZES: dict[str, int] = {}


class RunCost(NamedTuple):
    """The cost of one run, including the run of the scorer that it is built on (`Cell.base`)."""

    images: int
    flops: float
    """Floating-point operations of all steps, forwards and backwards: two for each multiplication with addition in
    matrix products, convolutions and attention. Elementwise operations aren't counted."""
    cpu_seconds: float
    """Processor time of all steps, without evaluation and start-up; nan before any run was timed."""

    @property
    def columns(self) -> dict[str, Any]:
        """The cost as columns of results. These have the number of images already."""
        return {"flops": self.flops, "cpu_seconds": "" if math.isnan(self.cpu_seconds) else self.cpu_seconds}

    @property
    def texts(self) -> tuple[str, str, str]:
        return f"{self.images:,}", quantity_text(self.flops / 1e12), quantity_text(self.cpu_seconds)


def quantity_text(value: float) -> str:
    """Write a quantity with three significant digits, or without decimals from 100 on; a dash for nan."""
    return UNKNOWN if math.isnan(value) else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def cost_in_labels(arm: Arm) -> RunCost:
    seconds = arm.labels["cpu_seconds"]
    return RunCost(arm.cell.images_seen, arm.labels["flops"], math.nan if seconds == "" else seconds)


def run_cost(cell: Cell, alike: Sequence[Cell], out: Path) -> RunCost:
    """Return the cost of a run of the study in `out`; the time is the median of all runs whose steps are `alike`."""
    flops, seconds = run_flops(cell), cell.recipe.steps * step_seconds(alike, out)
    if cell.base:
        before = run_cost(cell.base, [other.base for other in alike if other.base], out)
        flops, seconds = flops + before.flops, seconds + before.cpu_seconds
    return RunCost(cell.images_seen, flops, seconds)


def step_seconds(cells: Iterable[Cell], out: Path) -> float:
    """Return the median processor time of a step over the runs that were timed."""
    results = [read_cell_result(out / "cells" / cell.id) or {"provenance": {}} for cell in cells]
    timed = [result["provenance"].get("step_cpu_seconds") for result in results]
    return statistics.median([seconds for seconds in timed if seconds is not None] or [math.nan])


def run_flops(cell: Cell) -> float:
    """Count the operations of all steps of a run, without those of its base (`Cell.base`)."""
    from menagerie.models.training.feed import single_steps

    (single, rest), first = step_flops(cell), single_steps(cell.recipe)
    return first * single + (cell.recipe.steps - first) * rest


def step_flops(cell: Cell) -> tuple[float, float]:
    """Count the operations of a step in the single-object phase, and of one after it, on a few steps with the captions
    of the cell's split and images of noise."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from menagerie.models.checkpoint import build_scorer
    from menagerie.models.towers.tokenizers import text_space
    from menagerie.models.training.encoding import batch_loss
    from menagerie.models.training.feed import Feed, single_steps
    from menagerie.studies.frame.dry_run import noise

    recipe = replace(cell.recipe, single_object_phase=0.5, steps=2 * SAMPLES)
    key = replace(cell, seed=0, recipe=recipe, base=None).id
    if key not in _STEP_FLOPS:
        data, towers, counts = noise(cell.data.recipe, cell.towers.resolution), replace(cell.towers, load=False), []
        torch.set_num_threads(1)  # runs use the other cores: several threads would wait for one another
        with torch.random.fork_rng(devices=[]):
            scorer = build_scorer(cell.model, towers, text_space(towers, data.texts()), cell.options).train()
            feed = Feed(data, scorer.reader, recipe, 0, cell.negatives)
            for step in range(recipe.steps):
                with FlopCounterMode(display=False) as counter:
                    batch_loss(scorer, feed[step], recipe).backward()
                counts.append(int(counter.get_total_flops()))
        first = single_steps(recipe)
        _STEP_FLOPS[key] = statistics.fmean(counts[:first]), statistics.fmean(counts[first:])
    return _STEP_FLOPS[key]


def model_size(cell: Cell) -> int:
    """Return a model's number of parameters, counted once in a separate process: searches ask for it after each run."""
    key = digest({"model": cell.model, "towers": cell.towers, "options": cell.options})
    if key not in _SIZES:
        start_server(cell.threads)
        _SIZES[key] = call_in_child(count_parameters, cell.model, cell.towers, cell.options)
    return _SIZES[key]


def count_parameters(model: str, towers: TowerConfig, options: Mapping[str, Any]) -> int:
    """Build a scorer and count its parameters. Imports torch."""
    from menagerie.models.contract import build_for_contract

    return sum(parameter.numel() for parameter in build_for_contract(model, towers, options).parameters())

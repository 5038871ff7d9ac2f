"""What a run costs: images seen, floating-point operations, processor time."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from menagerie.studies.runs.cell import Cell, Job
from menagerie.studies.runs.results import finished

SAMPLES = 3  # steps that are counted of each phase: texts differ from batch to batch
_STEP_FLOPS: dict[str, tuple[float, float]] = {}


class Cost(NamedTuple):
    """The cost of one run, including the run that it starts from."""

    images: int
    """Images of all steps."""
    flops: float
    """Floating-point operations of all steps, forwards and backwards: two for each multiplication with addition in
    matrix products, convolutions and attention; what is done number by number isn't counted."""
    cpu_seconds: float
    """Processor time of all steps, evaluation and start not counted; nan before any run was timed."""


def cost_of(job: Job, alike: Sequence[Job]) -> Cost:
    """The cost of a run. `alike` are all runs of its choice and split, whose steps cost the same: their median time
    counts, because a machine is not always as fast."""
    cell = job.cell
    flops, seconds = run_flops(cell), cell.recipe.steps * step_seconds(alike)
    if cell.base:
        before = cost_of(replace(job, cell=cell.base), [replace(one, cell=one.cell.base) for one in alike])
        flops, seconds = flops + before.flops, seconds + before.cpu_seconds
    return Cost(cell.images_seen, flops, seconds)


def step_seconds(jobs: Sequence[Job]) -> float:
    """Median processor time of a step over the runs that were timed."""
    results = [finished(job.folder) for job in jobs]
    timed = [result["provenance"].get("step_cpu_seconds") for result in results if result]
    timed = [seconds for seconds in timed if seconds is not None]
    return statistics.median(timed) if timed else math.nan


def run_flops(cell: Cell) -> float:
    """Operations of all steps of a run, without what it starts from."""
    from menagerie.models.training.feed import single_steps

    single, rest = step_flops(cell)
    first = single_steps(cell.recipe)
    return first * single + (cell.recipe.steps - first) * rest


def step_flops(cell: Cell) -> tuple[float, float]:
    """Operations of a step in the single-object phase and of one after it, counted on a few that are not kept.

    Captions are those of the cell's split, images are noise: what a step costs doesn't depend on their content.
    """
    import torch

    from menagerie.models.checkpoint import build_scorer
    from menagerie.models.towers.tokenizers import text_space
    from menagerie.models.training.feed import Feed, single_steps
    from menagerie.studies.frame.step_cost import Noise

    fixed = {"seed": 0, "recipe": replace(cell.recipe, single_object_phase=0.5, steps=2 * SAMPLES), "base": None}
    key = replace(cell, **fixed).id
    if key not in _STEP_FLOPS:
        data, towers = Noise(cell.data.recipe, cell.towers.resolution), replace(cell.towers, load=False)
        with torch.random.fork_rng(devices=[]):
            scorer = build_scorer(cell.model, towers, text_space(towers, data.texts()), cell.options).train()
            feed = Feed(data, scorer.reader, fixed["recipe"], 0, cell.negatives)
            counts = [operations(scorer, feed[step], fixed["recipe"]) for step in range(2 * SAMPLES)]
        first = single_steps(fixed["recipe"])
        _STEP_FLOPS[key] = statistics.fmean(counts[:first]), statistics.fmean(counts[first:])
    return _STEP_FLOPS[key]


def operations(scorer: object, batch: object, recipe: object) -> int:
    """Operations of one step's loss and its gradients."""
    from torch.utils.flop_counter import FlopCounterMode

    from menagerie.models.training.loop import batch_loss

    with FlopCounterMode(display=False) as counter:
        batch_loss(scorer, batch, recipe).backward()
    return int(counter.get_total_flops())

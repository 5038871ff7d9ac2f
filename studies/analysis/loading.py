"""Times training steps whose batches come from loader processes, on several splits in turns
(`studies/throughput.py loading`)."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

from menagerie.envs.core.validation import Range, Several
from menagerie.studies.analysis.split_growth import small_clip
from menagerie.studies.runs.machine import processor, settle_torch

if TYPE_CHECKING:
    from menagerie.generators.storage.dataset import SplitDataset

Result = TypeVar("Result")
WARM_UP = 40  # steps that aren't timed


@dataclass(frozen=True)
class Loading:
    """Train a small CLIP on splits in turns; print the time of a step, and the memory of the run and its loaders."""

    splits: Annotated[tuple[Path, ...], Several(1)]
    """Split files; ratios are over the first one."""
    loaders: Annotated[int, Range(1, 64)] = 2
    """Processes that prepare batches."""
    steps: Annotated[int, Range(WARM_UP + 2, 10**6)] = 200
    """Steps of each turn."""
    batch: Annotated[int, Range(2, 100_000)] = 64
    """Images per step."""
    rounds: Annotated[int, Range(1, 10_000)] = 5
    """Turns of each split; figures are medians over them."""


class Turn(NamedTuple):
    """Time and memory of one turn."""

    step: float  # elapsed milliseconds, median over steps
    memory: float  # GB of this process and its loaders, without mapped files


def measure_loading(config: Loading) -> int:
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.generators.storage.split_file import read_split

    settle_torch(threads=1)
    opened = {path: time_call(partial(read_split, path)) for path in config.splits}
    ready = {path: time_call(partial(SplitDataset, split, "train")) for path, (_, split) in opened.items()}
    turns: dict[Path, list[Turn]] = {path: [] for path in config.splits}
    for _ in range(config.rounds):
        for path, (_, data) in ready.items():
            turns[path].append(take_turn(config, data))
    what = f"{config.loaders} loaders, batch {config.batch}, {config.steps} steps, {config.rounds} rounds"
    print(f"{what}, {processor()}")
    print(f"{'scenes':>12}{'opened, s':>12}{'ready, s':>12}{'step, ms':>12}{'over the first':>16}{'memory, GB':>12}")
    for path, (taken, data) in ready.items():
        ratio = median(a.step / b.step for a, b in zip(turns[path], turns[config.splits[0]], strict=True))
        step, memory = median(one.step for one in turns[path]), max(one.memory for one in turns[path])
        print(f"{len(data):>12}{opened[path][0]:>12.2f}{taken:>12.2f}{step:>12.1f}{ratio:>16.2f}{memory:>12.2f}")
    return 0


def time_call(call: Callable[[], Result]) -> tuple[float, Result]:
    """Return the elapsed seconds of a call, and its result."""
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def take_turn(config: Loading, data: "SplitDataset") -> Turn:
    """Train a new CLIP for some steps."""
    from menagerie.models.recipe import Recipe
    from menagerie.models.training.loop import Progress, train_scorer

    ends, memory = [], []

    def note(progress: Progress) -> None:
        ends.append(time.perf_counter())
        if progress.step == config.steps:
            memory.append(own_memory())

    recipe = Recipe(steps=config.steps, batch=config.batch, warmup=1)
    train_scorer(small_clip(data), data, recipe, 0, report=note, workers=config.loaders)
    return Turn(1000 * median(b - a for a, b in zip(ends[WARM_UP:], ends[WARM_UP + 1 :], strict=False)), *memory)


def own_memory() -> float:
    """Return the GB of this process and its loaders, with shared pages divided and without pages of files; NaN without
    /proc."""
    rollups = [Path(f"/proc/{pid}/smaps_rollup") for pid in (os.getpid(), *(one.pid for one in active_children()))]
    try:
        lines = [line.split() for rollup in rollups for line in rollup.read_text().splitlines()]
    except OSError:
        return float("nan")
    return sum(int(line[1]) for line in lines if line[0] == "Pss_Anon:") / 1e6

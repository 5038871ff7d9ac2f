"""Measurements of `studies/throughput.py growth` at one amount of data: functions that yield names and numbers."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

from menagerie.envs.core.validation import SIDE, Range, Several

BATCHES, CALLS = (64, 4096), 50
MEMORY = Path("/proc/self")
Part = Literal["sampler", "splits", "batches", "report"]
RUNS_OF_A_PLACE = 10  # two models, five seeds
Amounts = Annotated[tuple[int, ...], Range(10, 10**9), Several(1)]


@dataclass(frozen=True)
class Growth:
    """How sampling, making, opening, training and auditing grow with the number of scenes, a training step with its
    batch, and a report with its runs."""

    parts: Annotated[tuple[Part, ...], Several(1)] = ("sampler", "splits")
    """What is measured: the sampler of batches; splits of multi-object scenes, made, trained on once and audited;
    training steps; the report of a grid with invented results."""
    rows: Amounts = (50_000, 500_000, 5_000_000)
    """Numbers of items in samplers."""
    scenes: Amounts = (1_000, 3_000, 10_000)
    """Training scenes of splits of multi-object scenes."""
    batches: Annotated[tuple[int, ...], Range(2, 10**5), Several(1)] = (64, 256, 1024)
    """Images per training step."""
    runs: Annotated[tuple[int, ...], Range(RUNS_OF_A_PLACE, 10**6), Several(1)] = (100, 1_000)
    """Numbers of training runs of the grid; rounded down to two models with five seeds at each place."""
    world: str = "eight-textures"
    """World of the splits."""
    resolution: Annotated[int, SIDE] = 32
    """Pixels along an image's side."""
    store: Path | None = None
    """Folder for atlases and split files, which are deleted; the system's temporary folder if none is given."""


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return a call's processor time in seconds, and its result."""
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


class Peak:
    """The largest growth of this process's memory since this object was made, in MiB; NaN where there is no /proc."""

    def __init__(self) -> None:
        with contextlib.suppress(OSError):
            (MEMORY / "clear_refs").write_text("5")  # from now on the peak counts anew
        self.before = self._now("VmRSS")

    def more(self) -> float:
        return self._now("VmHWM") - self.before

    def _now(self, name: str) -> float:
        try:
            lines = (MEMORY / "status").read_text().splitlines()
        except OSError:
            return float("nan")
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def sampler_growth(config: Growth, folder: Path, amount: int) -> Iterator[tuple[str, float]]:
    """Time calls of the sampler: the first one, and the median of the later ones."""
    from menagerie.models.training.sampling import Stream

    for shuffle in (None, "feistel"):
        named = shuffle or "in memory"
        for batch in BATCHES:
            stream = Stream(amount, 0, "all", shuffle)
            first, _ = seconds(partial(stream.take, 0, batch))
            calls = [seconds(partial(stream.take, k * batch, batch))[0] for k in range(1, CALLS)]
            yield f"{named}, batch {batch}: first call, ms", 1000 * first
            yield f"{named}, batch {batch}: each other, ms", 1000 * median(calls)

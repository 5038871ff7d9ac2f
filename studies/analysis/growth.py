"""Measures how time and memory grow with the amount of data, for `studies/throughput.py growth`.

Times are processor time. An exponent e says that twice the amount takes 2^e times as long; it is taken between the last
two amounts, because a constant share hides it in small ones.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Annotated, Literal

from menagerie.envs.core.files import scratch_folder
from menagerie.envs.core.validation import SIDE, Range, Several
from menagerie.studies.analysis.growth_parts import file_growth, index_growth, sampler_growth, split_growth

Part = Literal["index", "sampler", "files", "splits"]
Amounts = Annotated[tuple[int, ...], Range(10, 10**9), Several(1)]


@dataclass(frozen=True)
class Growth:
    """How listing, finding, sampling, making, opening and auditing grow with the number of scenes."""

    parts: Annotated[tuple[Part, ...], Several(1)] = ("index", "sampler", "splits")
    """What is measured: a store's index; the sampler of batches; a split of many shards, whose images have four pixels,
    in a process that may have few files open; splits of crowds, rendered and audited."""
    rows: Amounts = (50_000, 500_000, 5_000_000)
    """Synthetic scenes of indices and of shards, and items of samplers."""
    scenes: Amounts = (1_000, 3_000, 10_000)
    """Training scenes of splits of crowds."""
    handles: Annotated[int, Range(32, 10**6)] = 256
    """Files that may be open while the many shards are read."""
    world: str = "eight-textures"
    """World of the splits."""
    resolution: Annotated[int, SIDE] = 32
    """Pixels along an image's side."""
    store: Path | None = None
    """Folder for stores and indices, which are deleted; the system's temporary folder if none is given."""


Row = dict[str, float]


def growth(config: Growth) -> int:
    """Measure and print."""
    from menagerie.studies.runs.machine import processor

    print(f"processor time; {processor()}")
    for part in config.parts:
        amounts = config.scenes if part == "splits" else config.rows
        rows = [measured(PARTS[part], config, amount) for amount in amounts]
        print_table(f"{part}, by number of scenes", amounts, rows)
    return 0


def measured(measure: Callable[..., Iterator[tuple[str, float]]], config: Growth, amount: int) -> Row:
    """Measure in a folder that is deleted afterwards."""
    with scratch_folder(config.store) as folder:
        found = {}
        for name, value in measure(config, folder, amount):
            found[name] = value
            print(f"{amount}: {name} {value:.3g}", file=sys.stderr, flush=True)  # large amounts take long
        return found


def print_table(title: str, amounts: Sequence[int], rows: Sequence[Row]) -> None:
    """Print a line for each measure, and its exponent."""
    print(f"\n{title:<42}" + "".join(f"{amount:>12}" for amount in amounts) + f"{'exponent':>10}")
    for name in rows[-1]:
        values = [row[name] for row in rows]
        line = f"{name:<42}" + "".join(f"{value:>12.3g}" for value in values)
        print(line + (f"{exponent(amounts[-2:], values[-2:]):>10.2f}" if len(rows) > 1 else ""), flush=True)


def exponent(amounts: Sequence[int], values: Sequence[float]) -> float:
    """The e of value ~ amount^e between two amounts."""
    (few, many), (small, large) = amounts, values
    return log(large / small) / log(many / few) if min(values) > 0 else float("nan")


PARTS = {"index": index_growth, "sampler": sampler_growth, "files": file_growth, "splits": split_growth}

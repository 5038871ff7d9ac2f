"""Measures how time and memory grow with the amount of data, for `studies/throughput.py growth`.

Times are processor time. With exponent e, twice the amount takes 2^e times as long. It is computed from the last two
amounts, because a constant part dominates at small ones.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from math import log
from pathlib import Path

from menagerie.envs.core.files import scratch_folder
from menagerie.studies.analysis.growth_parts import Growth, sampler_growth
from menagerie.studies.analysis.split_growth import batch_growth, split_growth

Row = dict[str, float]
Measure = Callable[[Growth, Path, int], Iterator[tuple[str, float]]]


def measure_growth(config: Growth, report: Measure) -> int:
    """Measure all parts and print their tables. `report` is the measurement of reports, which this folder can't
    import."""
    from menagerie.studies.runs.machine import processor

    print(f"processor time; {processor()}")
    for part in config.parts:
        amounts = {"splits": config.scenes, "batches": config.batches, "report": config.runs}.get(part, config.rows)
        rows = [measure_amount((PARTS | {"report": report})[part], config, amount) for amount in amounts]
        unit = {"report": "runs", "batches": "images"}.get(part, "scenes")
        print_growth(f"{part}, by number of {unit}", amounts, rows)
    return 0


def measure_amount(measure: Measure, config: Growth, amount: int) -> Row:
    """Measure one amount in a folder that is deleted afterwards."""
    with scratch_folder(config.store) as folder:
        found = {}
        for name, value in measure(config, folder, amount):
            found[name] = value
            print(f"{amount}: {name} {value:.3g}", file=sys.stderr, flush=True)  # large amounts take long
        return found


def print_growth(title: str, amounts: Sequence[int], rows: Sequence[Row]) -> None:
    """Print a line for each measure, and its exponent."""
    print(f"\n{title:<42}" + "".join(f"{amount:>12}" for amount in amounts) + f"{'exponent':>10}")
    for name in rows[-1]:
        values = [row[name] for row in rows]
        line = f"{name:<42}" + "".join(f"{value:>12.3g}" for value in values)
        print(line + (f"{exponent(amounts[-2:], values[-2:]):>10.2f}" if len(rows) > 1 else ""), flush=True)


def exponent(amounts: Sequence[int], values: Sequence[float]) -> float:
    """Return the e of value ~ amount^e from two amounts; NaN if a value isn't positive."""
    (few, many), (small, large) = amounts, values
    return log(large / small) / log(many / few) if min(values) > 0 else float("nan")


PARTS = {"sampler": sampler_growth, "splits": split_growth, "batches": batch_growth}

"""Whether a report is of a smoke run: of so few steps, or records, that its numbers say nothing about the models."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Below these no preset is meant to measure anything.
LEAST_STEPS, LEAST_RECORDS = 200, 50


def smoke_words(steps: Iterable[int], records: Iterable[int] = ()) -> str:
    """One sentence for the head of the report of a smoke run; of any other run nothing.

    `steps` are those of its training runs, `records` how many each test has; either may be unknown, which is none.
    """
    most, largest = max(steps, default=0), max(records, default=0)
    few = []
    if 0 < most < LEAST_STEPS:
        few.append(f"no model was trained for more than {most} steps")
    if 0 < largest < LEAST_RECORDS:
        few.append(f"no test has more than {largest} record{'s' * (largest > 1)}")
    return f"This is a smoke run: {' and '.join(few)}. Its numbers say nothing about the models." if few else ""


def records_in(results: Sequence[Mapping[str, Any]]) -> list[int]:
    """How many records each test of each finished run has, by task."""
    return [scores["n"] for its in results for tasks in its["subsets"].values() for scores in tasks.values()]

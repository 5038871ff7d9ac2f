"""Results of a grid: one line per cell, one row per cell, subset and task, and tables of means."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_csv
from menagerie.envs.core.identity import plain
from menagerie.envs.core.records import read_records, write_records
from menagerie.studies.runs.cell import finished
from menagerie.studies.runs.data import FRACTIONS
from menagerie.studies.runs.result_file import Result

# What varies beside fractions has a column of its own behind theirs.
COLUMNS = ("model", "seed", "pairs", "hard_negatives", "subset", "task", "accuracy", "tie_rate", "n", "images_seen")


class Mean(NamedTuple):
    """Mean and standard deviation over seeds; None where the subset is empty, or no cell is finished."""

    mean: float | None
    deviation: float | None
    seeds: int
    """Finished cells."""


def collect(folders: Iterable[Path]) -> list[dict[str, Any]]:
    """The results of all finished cells, in the order of `folders`."""
    return [result for folder in folders if (result := finished(folder))]


def read_results(run: Path) -> list[dict[str, Any]]:
    """The results in `cells.jsonl` of a grid's folder, of which there must be one."""
    file = run / "cells.jsonl"
    try:
        results = read_records(file, Result)
        if lacking := [key for result in results for key in ("id", *COLUMNS[:4]) if key not in result]:
            raise KeyError(lacking[0])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{run} is not the folder of a grid: {file} can't be read ({error})") from error
    if not results:
        raise UserError(f"{run} has no finished cell yet; start its command again")
    return results


def axes_of(results: Sequence[dict[str, Any]]) -> list[str]:
    """What varies from place to place, the two fractions first."""
    return list(dict.fromkeys([*FRACTIONS, *(name for result in results for name in result.get("axes", ()))]))


def columns_of(results: Sequence[dict[str, Any]], axes: Sequence[str] = ()) -> tuple[str, ...]:
    """`COLUMNS`, with those of what else varies; a study that has no result yet says what, in `axes`."""
    return (*COLUMNS[:2], *dict.fromkeys([*axes_of(results), *axes]), *COLUMNS[4:])


def place_of(result: Mapping[str, Any], axes: Sequence[str]) -> tuple[Any, ...]:
    """The place of a result, with lists as text."""
    return tuple("+".join(v) if isinstance(v := result.get(name), list | tuple) else v for name in axes)


def rows(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row of `COLUMNS`, and of what else varies, for each result, subset and task."""
    axes = axes_of(results)
    return [
        {name: result[name] for name in COLUMNS if name in result}
        | dict(zip(axes, place_of(result, axes), strict=True))
        | {"subset": subset, "task": task, **scores}
        for result in results
        for subset, tasks in result["subsets"].items()
        for task, scores in tasks.items()
    ]


def write_results(out: Path, results: Sequence[dict[str, Any]]) -> None:
    """Write `cells.jsonl` and `results.csv` from what is finished."""
    write_records(out / "cells.jsonl", results)
    columns = columns_of(results)
    write_csv(out / "results.csv", columns, ([row[name] for name in columns] for row in rows(results)))


def mean_accuracy(
    results: Sequence[dict[str, Any]],
    model: str,
    subset: str,
    place: Mapping[str, Any],
    task: str = "swap",
) -> Mean:
    """Accuracy over the seeds of one place of the grid; undefined for a task that the world has no words for."""
    accuracies = [
        result["subsets"].get(subset, {}).get(task, {}).get("accuracy")
        for result in results
        if result["model"] == model and all(result.get(name) == plain(value) for name, value in place.items())
    ]
    return mean_of(accuracies)


def mean_of(accuracies: Sequence[float | None]) -> Mean:
    """The mean of one accuracy a seed, None where it is undefined."""
    defined = [accuracy for accuracy in accuracies if accuracy is not None]
    if not defined:
        return Mean(None, None, len(accuracies))
    deviation = statistics.stdev(defined) if len(defined) > 1 else None
    return Mean(statistics.mean(defined), deviation, len(accuracies))

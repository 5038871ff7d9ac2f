"""Results: the file in the folder of a cell or piece with its digests, and the tables of a grid's cells."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_csv
from menagerie.envs.core.identity import plain
from menagerie.envs.core.reading import read_text
from menagerie.envs.core.records import (
    FILES,
    RESULT,
    check_file,
    damaged,
    file_digest,
    noted_in,
    read_records,
    result_in,
    write_record,
    write_records,
)
from menagerie.studies.runs.data import FRACTIONS

Numbers = dict[str, float | None]


class CutTexts(msgspec.Struct):
    """Numbers of texts longer than the model reads; missing if its reader can't tell."""

    texts: int = 0
    of: int = 0
    context: int = 0
    first: str = ""


class Result(msgspec.Struct):
    """Types of the keys that we read from a result; further keys give its place in a study, and counts."""

    id: str
    model: str
    seed: int = 0
    axes: list[str] = []
    settings: dict[str, Any] = {}
    subsets: dict[str, dict[str, Numbers]] = {}
    train_images: int = 0
    images_seen: int = 0
    parameters: int = 0
    carried: dict[str, Any] = {}
    split: str = ""
    benchmark: str = ""
    groups: dict[str, Numbers] = {}
    headlines: dict[str, Numbers] = {}
    wrong: list[dict[str, Any]] = []
    cut: CutTexts | None = None
    skipped: dict[str, int] = {}
    files: dict[str, str] = {}
    seconds: float = 0.0
    provenance: dict[str, Any] = {}


def write_result(folder: Path, result: dict[str, Any], files: tuple[str, ...] = (), varying: tuple[str, ...] = ()):
    """Write a result with digests of files in its folder; the `varying` files may differ between two runs of
    one cell.
    """
    noted = {FILES: digests_in(folder, files)} if files else {}
    origin = result.get("provenance", {}) | ({FILES: digests_in(folder, varying)} if varying else {})
    write_record(folder / RESULT, result | noted | ({"provenance": origin} if origin else {}))


def digests_in(folder: Path, names: tuple[str, ...]) -> dict[str, str]:
    """The digests of files by their names."""
    return {name: file_digest(folder / name) for name in names}


def read_result(folder: Path) -> dict[str, Any] | None:
    """Read the result in a folder; None if there is none yet."""
    result = result_in(folder, Result)
    if result is not None and not result.keys() & {"subsets", "groups"}:
        raise damaged(folder / RESULT, "it has no numbers")
    return result


def checked_file(folder: Path, name: str) -> Path:
    """The path of a file beside a result; raises `Unreadable` if the file changed since the result was written.

    A file without a recorded digest isn't checked.
    """
    if digest := noted_in(read_result(folder) or {}, name):
        check_file(folder / name, digest)
    return folder / name


def finished(folder: Path) -> dict[str, Any] | None:
    """The result in a cell's folder; None if the cell isn't finished."""
    return read_result(folder)


LEFT_OUT = "left_out.txt"  # why a piece of an evaluation has no result; the next command tries it again


def left_out(folder: Path) -> str:
    """Why there is no result in a folder; empty where there is one, or nothing has ended yet."""
    file = folder / LEFT_OUT
    return read_text(file) if file.exists() and finished(folder) is None else ""


# Varied settings besides the fractions have columns after theirs.
COLUMNS = ("model", "seed", "pairs", "hard_negatives", "subset", "task", "accuracy", "tie_rate", "n", "images_seen")


class Mean(NamedTuple):
    """Mean and standard deviation over seeds; None if the subset is empty or no cell is finished."""

    mean: float | None
    deviation: float | None
    seeds: int
    """Number of finished cells."""


def collect(folders: Iterable[Path]) -> list[dict[str, Any]]:
    """The results of all finished cells, in the order of `folders`."""
    return [result for folder in folders if (result := finished(folder))]


def read_results(run: Path) -> list[dict[str, Any]]:
    """The results in `cells.jsonl` of a grid's folder; raises if there are none."""
    file = run / "cells.jsonl"
    try:
        results = read_records(file, Result)
        if lacking := [key for result in results for key in ("id", *COLUMNS[:2]) if key not in result]:
            raise KeyError(lacking[0])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{run} is not the folder of a study: {file} can't be read ({error})") from error
    if not results:
        raise UserError(f"{run} has no finished cell yet; start its command again")
    return results


def axes_of(results: Sequence[dict[str, Any]]) -> list[str]:
    """The names of the settings that vary, the two fractions first."""
    return list(dict.fromkeys([*FRACTIONS, *(name for result in results for name in result.get("axes", ()))]))


def columns_of(results: Sequence[dict[str, Any]], axes: Sequence[str] = ()) -> tuple[str, ...]:
    """`COLUMNS` and the varied settings, which a study without results gives in `axes`."""
    return (*COLUMNS[:2], *dict.fromkeys([*axes_of(results), *axes]), *COLUMNS[4:])


def place_of(result: Mapping[str, Any], axes: Sequence[str]) -> tuple[Any, ...]:
    """The place of a result, with lists as text."""
    return tuple("+".join(v) if isinstance(v := result.get(name), list | tuple) else v for name in axes)


def rows(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row of `COLUMNS` and varied settings for each result, subset and task."""
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
    """Write `cells.jsonl` and `results.csv` from the finished cells."""
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
    """Accuracy over the seeds of one place of the grid; None for a task that the world has no words for."""
    accuracies = [
        result["subsets"].get(subset, {}).get(task, {}).get("accuracy")
        for result in results
        if result["model"] == model and all(result.get(name) == plain(value) for name, value in place.items())
    ]
    return mean_of(accuracies)


def mean_of(accuracies: Sequence[float | None]) -> Mean:
    """The mean of accuracies, one for each seed; None marks undefined ones."""
    defined = [accuracy for accuracy in accuracies if accuracy is not None]
    if not defined:
        return Mean(None, None, len(accuracies))
    deviation = statistics.stdev(defined) if len(defined) > 1 else None
    return Mean(statistics.mean(defined), deviation, len(accuracies))

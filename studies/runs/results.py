"""Results: the file in the folder of a cell or piece, with digests, and the table of all results of a study."""

from pathlib import Path
from typing import Any

import msgspec

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import read_text
from menagerie.envs.core.records import check_digest, file_digest, read_record, read_records, write_record
from menagerie.models.cell_results import FILES, RESULT, damaged_result, recorded_digest, result_in

LEFT_OUT = "left_out.txt"  # why a piece of an evaluation has no result; the next command tries again
COLUMNS = ("model", "seed", "pairs", "hard_negatives", "subset", "task", "accuracy", "tie_rate", "n", "images_seen")
CELLS = "cells.jsonl"  # the results of all finished cells of a study
CARRIED = "carried.json"  # in a cell that starts from weights of another study
Numbers = dict[str, float | None]


class CutTexts(msgspec.Struct):
    """How many texts are longer than the model reads, and the first of them; empty if that isn't known."""

    texts: int = 0
    of: int = 0
    context: int = 0
    first: str = ""


class StoredResult(msgspec.Struct):
    """Types of the keys that are read from a result; further keys are its labels and counts."""

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
    tasks: dict[str, Numbers] = {}
    headlines: dict[str, Numbers] = {}
    cut: CutTexts | None = None
    skipped: dict[str, int] = {}
    judged: dict[str, int] = {}
    answered_by: list[str] = []
    files: dict[str, str] = {}
    seconds: float = 0.0
    provenance: dict[str, Any] = {}


def write_result(folder: Path, result: dict[str, Any], files: tuple[str, ...] = (), varying: tuple[str, ...] = ()):
    """Write a result with digests of files in its folder; `varying` files may differ between two runs of one cell."""
    noted, apart = ({name: file_digest(folder / name) for name in names} for names in (files, varying))
    origin = result.get("provenance", {}) | ({FILES: apart} if apart else {})
    result = result | ({FILES: noted} if noted else {}) | ({"provenance": origin} if origin else {})
    write_record(folder / RESULT, result)


def read_result(folder: Path) -> dict[str, Any] | None:
    """Read the result in a folder; None if there is none yet."""
    result = result_in(folder, StoredResult)
    if result is not None and not result.keys() & {"subsets", "tasks"}:
        raise damaged_result(folder / RESULT, "it has no numbers")
    return result


def checked_file(folder: Path, name: str) -> Path:
    """Return the path of a file beside a result; raises `Unreadable` if it changed since the result was written."""
    if digest := recorded_digest(read_result(folder) or {}, name):
        check_digest(folder / name, digest)
    return folder / name


def reason_in(folder: Path, name: str) -> str:
    """Return why there is no result, from a file beside it; empty if there is a result, or no such file."""
    file = folder / name
    return read_text(file).strip() if file.exists() and read_result(folder) is None else ""


def read_results(run: Path) -> list[dict[str, Any]]:
    """Read the results in `cells.jsonl` of a study's folder; raises if there are none."""
    file = run / CELLS
    try:
        results = read_records(file, StoredResult)
        if lacking := [key for result in results for key in ("id", *COLUMNS[:2]) if key not in result]:
            raise KeyError(lacking[0])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{run} is not the folder of a study: {file} can't be read ({error})") from error
    if not results:
        raise UserError(f"{run} has no finished cell yet; start its command again")
    return results


class CarriedFile(msgspec.Struct, forbid_unknown_fields=True):
    """The content of `carried.json`: menagerie.models.carry_over.Carried, and the folder of the checkpoint."""

    words: int
    new_words: list[str]
    positions: int
    new_positions: int
    folder: str = msgspec.field(name="from")


def read_carried(folder: Path) -> dict[str, Any]:
    """Read what the cell's scorer took over from the scorer that it started from."""
    return read_record(folder / CARRIED, CarriedFile)

"""The results of cells and pieces: where they lie, and the digests of other files that they record."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Unreadable
from menagerie.envs.core.records import read_record

RESULT = "result.json"
CONFIG, WEIGHTS = "config.json", "model.safetensors"  # of a checkpoint
HOLDERS = ("cells", "pieces")  # folders whose subfolders are named after the results in them
FILES = "files"  # key of the digests by file name; in a result's provenance, of files that differ between runs


def recorded_digest(result: Mapping[str, Any], name: str) -> str:
    """The digest that a result records for a file; empty if it records none."""
    origin = result.get("provenance", {})
    places = [result.get(FILES), origin.get(FILES) if isinstance(origin, dict) else None]
    return next((str(files[name]) for files in places if isinstance(files, dict) and name in files), "")


def read_recorded_digest(folder: Path, name: str) -> str:
    """The digest that the result in a folder records for a file there; empty if it records none or can't be read.

    A damaged result raises nothing here: another program's file may have its name, and callers that need the result
    report the damage.
    """
    try:
        return recorded_digest(read_record(folder / RESULT), name)
    except Unreadable:
        return ""


def result_in(folder: Path, shape: Any) -> dict[str, Any] | None:
    """Read the result in the folder of a cell or piece and check its shape, a type that msgspec knows; None if there is
    none yet.

    Raises `UserError` if it is damaged or belongs to another cell or piece.
    """
    file, place = folder / RESULT, folder.absolute()
    if not file.exists() and not file.is_symlink():
        return None
    try:
        result = read_record(file, shape)
    except Unreadable as error:
        raise damaged_result(file, error) from error
    holder, identity = place.parent.name, result.get("id", place.name)
    if holder in HOLDERS and identity != place.name:
        raise UserError(
            f"{file} is the result of {holder[:-1]} {identity:.50}; put it back there, or move this folder out of "
            f"{holder!r}"
        )
    return result


def damaged_result(file: Path, reason: object) -> UserError:
    """Make the error for a result that can't be read."""
    return UserError(f"{file} is damaged ({reason}); delete it and run again: only this cell is made anew")

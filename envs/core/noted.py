"""What a result notes of the files in its folder: the digest of each, as it was when the result was written.

Whoever opens such a file, on whatever floor, finds here whether it is still that one, and reads the result here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Unreadable
from menagerie.envs.core.records import read_record

RESULT = "result.json"
HOLDERS = ("cells", "pieces")  # folders of folders that are named by the results in them
FILES = "files"  # digests by name, in the result; in its provenance those of files that differ from run to run


def noted_in(result: Mapping[str, Any], name: str) -> str:
    """The digest that a result notes of a file; empty where it notes none, as results of before there were digests."""
    origin = result.get("provenance", {})
    places = [result.get(FILES), origin.get(FILES) if isinstance(origin, dict) else None]
    return next((str(files[name]) for files in places if isinstance(files, dict) and name in files), "")


def noted_digest(folder: Path, name: str) -> str:
    """The digest that the result in a folder notes of a file there; empty where there is no result that can be read.

    Somebody else's file may have the result's name, and who reads results themselves reports a damaged one.
    """
    try:
        return noted_in(read_record(folder / RESULT), name)
    except Unreadable:
        return ""


def result_in(folder: Path, shape: Any) -> dict[str, Any] | None:
    """The result in the folder of a cell or piece, of a shape that msgspec knows; None where there is none yet.

    Raises `UserError` for one that is damaged, and for the result of another cell.
    """
    file, place = folder / RESULT, folder.absolute()
    if not file.exists() and not file.is_symlink():
        return None
    try:
        result = read_record(file, shape)
    except Unreadable as error:
        raise damaged(file, error) from error
    holder, own = place.parent.name, result.get("id", place.name)
    if holder in HOLDERS and own != place.name:
        raise UserError(
            f"{file} is the result of {holder[:-1]} {own:.50}; put it back there, or move this folder out of {holder!r}"
        )
    return result


def damaged(file: Path, reason: object) -> UserError:
    """The error of a result that can't be read."""
    return UserError(f"{file} is damaged ({reason}); delete it and run again: only this cell is made anew")

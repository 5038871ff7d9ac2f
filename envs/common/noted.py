"""What a result notes of the files in its folder: the digest of each, as it was when the result was written.

Whoever opens such a file, on whatever floor, finds here whether it is still that one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envs.common.reading import Unreadable
from envs.common.records import read_record

RESULT = "result.json"
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

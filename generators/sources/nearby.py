"""Suggestions for missing files and folders: the same name one folder away, or data that a command can convert."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def nearby(folder: Path, name: str) -> Path | None:
    """The first existing path near `folder` where `name` may lie (`searched`); None if there is none. `name` is a
    relative path that doesn't lead outside."""
    return next((path for path in searched(folder, PurePosixPath(name)) if os.path.exists(path)), None)


def hint(folder: Path, name: str) -> str:
    """A clause for the message about a missing file that says where it lies instead; empty if it isn't nearby."""
    place = nearby(folder, name)
    return f"; it lies at {place}" if place else ""


def searched(folder: Path, name: PurePosixPath) -> Iterator[Path]:
    """Yield candidate paths: one folder up, one folder down, and with another file ending."""
    parent = (folder / name).parent
    yield folder.parent / name
    if len(name.parts) > 1:
        yield folder.joinpath(*name.parts[1:])
        yield parent.parent / name.name
    yield from (part / name for part in entries_of(folder) if os.path.isdir(part))
    if parent != folder:
        yield from (part / name.name for part in entries_of(parent) if os.path.isdir(part))
    yield from (path for path in entries_of(parent) if path.stem.lower() == name.stem.lower())


def entries_of(folder: Path) -> list[Path]:
    """The paths in a folder, sorted by name; empty if it can't be listed."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


TABLES = ("*.parquet", "*.arrow")
BELOW = ("*/*.parquet", "*/*.arrow", "*/*/*.parquet")  # SPLIT/data-….arrow, CONFIGURATION/SPLIT/0000.parquet
CLASSES = "classnames.txt"  # of a webdataset


def found_instead(path: Path) -> str:
    """A suggestion to convert tables or a webdataset found in the folder of a missing path; empty if there are none.

    If that folder is missing too, the nearest existing one above it is searched. It may be a data root with many data
    sets, so only tables directly inside it, or in its `data`, count.
    """
    start = path if path.is_dir() else path.parent
    folder = next((place for place in (start, *start.parents) if place.is_dir()), start)
    patterns = (*TABLES, *BELOW) if folder == start else (*TABLES, "data/*.parquet")
    if is_webdataset(folder):
        kind = "a webdataset of CLIP_benchmark"
    elif any(True for pattern in patterns for _ in folder.glob(pattern)):
        kind = "tables of the Hugging Face hub"
    else:
        return ""
    command = f"menagerie import-hf {shlex.quote(str(folder))} --data-root DATA"
    return f"{folder} holds {kind}, which `{command}` may read"


def is_webdataset(folder: Path) -> bool:
    """Whether a folder is a webdataset of CLIP_benchmark with classes."""
    return (folder / CLASSES).is_file() and any(folder.glob("*/*.tar"))


def or_instead(remedy: str, path: Path) -> str:
    """The suggestion for a missing file if there is one, else `remedy`."""
    return found_instead(path) or remedy

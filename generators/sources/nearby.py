"""What lies near a file or folder that is missing: the same one a folder off, or what a command makes it of."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def nearby(folder: Path, name: str) -> Path | None:
    """The first such place of `name`, a path below `folder` that doesn't lead out of it; None where there is none."""
    return next((path for path in searched(folder, PurePosixPath(name)) if os.path.exists(path)), None)


def hint(folder: Path, name: str) -> str:
    """A clause that says where it lies; empty where it isn't near."""
    place = nearby(folder, name)
    return f"; it lies at {place}" if place else ""


def searched(folder: Path, name: PurePosixPath) -> Iterator[Path]:
    """A folder higher, a folder lower, and with another ending."""
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
    """What lies in the folder of a file or folder that is missing, or above it; empty where it's nothing that is known.

    A data root has the folders of many data sets: of a folder that isn't the missing one's own only what lies right in
    it, or in its `data`, counts.
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
    """Whether a folder is a webdataset of CLIP_benchmark that has classes."""
    return (folder / CLASSES).is_file() and any(folder.glob("*/*.tar"))


def or_instead(remedy: str, path: Path) -> str:
    """A remedy for a file that is missing, unless what lies there has a better one."""
    return found_instead(path) or remedy

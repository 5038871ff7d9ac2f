"""Suggestions for missing files: data that a command can convert."""

import shlex
from pathlib import Path

TABLES = ("*.parquet", "*.arrow")
CLASSES = "classnames.txt"  # of a webdataset


def found_instead(path: Path) -> str:
    """A suggestion to convert tables or a webdataset found in the folder of a missing path; empty if there are none.

    If that folder is missing too, the nearest existing one above it is searched. It may be a data root with many data
    sets, so only tables directly inside it, or in its `data`, count.
    """
    start = path if path.is_dir() else path.parent
    folder = next((place for place in (start, *start.parents) if place.is_dir()), start)
    below = ("", "*/", "*/*/") if folder == start else ("", "data/")  # SPLIT/, CONFIGURATION/SPLIT/
    if is_webdataset(folder):
        kind = "a webdataset of CLIP_benchmark"
    elif any(True for inside in below for table in TABLES for _ in folder.glob(inside + table)):
        kind = "tables of the Hugging Face hub"
    else:
        return ""
    command = f"menagerie import-hf {shlex.quote(str(folder))} --data-root DATA"
    return f"{folder} holds {kind}, which `{command}` may read"


def is_webdataset(folder: Path) -> bool:
    """Whether a folder is a webdataset of CLIP_benchmark with classes."""
    return (folder / CLASSES).is_file() and any(folder.glob("*/*.tar"))

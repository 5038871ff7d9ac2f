"""What lies where official files are missing, and which command may make them of it."""

import shlex
from pathlib import Path

TABLES = ("*.parquet", "*.arrow")
BELOW = ("*/*.parquet", "*/*.arrow", "*/*/*.parquet")  # SPLIT/data-….arrow, CONFIGURATION/SPLIT/0000.parquet
CLASSES = "classnames.txt"  # of a webdataset


def found_instead(path: Path) -> str:
    """What lies in the folder of a file or folder that is missing, or above it; empty where it's nothing that is known.

    A data root has the folders of many data sets: of a folder that isn't the missing one's own only what lies right in
    it, or in its `data`, counts.
    """
    own = path if path.is_dir() else path.parent
    folder = next((place for place in (own, *own.parents) if place.is_dir()), own)
    patterns = (*TABLES, *BELOW) if folder == own else (*TABLES, "data/*.parquet")
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

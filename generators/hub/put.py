"""Folders of the Hugging Face hub and of a data root: what one is called, and files put below the other, all or none.

In the hub's own cache, `datasets--OWNER--SET/snapshots/COMMIT` is a folder of links to `datasets--OWNER--SET/blobs`.
"""

import filecmp
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder

SNAPSHOTS, KIND, BETWEEN = "snapshots", "datasets--", "--"


def own_name(folder: Path) -> str:
    """The name of a folder of the hub; for one in the cache, the name of its data set."""
    place = folder.resolve()
    if place.parent.name != SNAPSHOTS:
        return place.name
    name = place.parents[1].name
    return name.rpartition(BETWEEN)[2] if name.startswith(KIND) else name


def is_cached(folder: Path) -> bool:
    """Whether a folder lies in the cache, where files are links."""
    return SNAPSHOTS in folder.resolve().parent.parts


class Made(NamedTuple):
    """The benchmark files that were made of a folder of the hub."""

    benchmark: str
    folder: str
    """The folder of its images, below the data root."""
    records: Mapping[str, int]
    """The number of records of each part of the benchmark; the part is "" where there is only one."""
    images: int
    read: Sequence[str]
    """The tables that were read, or the split."""
    left_out: Sequence[str]
    """The tables or splits that weren't read, and the reasons why samples were refused, with their numbers."""
    note: str = ""
    """Says what else the benchmark needs."""
    warning: str = ""
    """Says what these files can't be used for."""


def scratch_below(root: Path) -> AbstractContextManager[Path]:
    """A folder for what is made, on the disk of the data root, which may not be there yet; deleted at the end."""
    place = root.absolute()
    return scratch_folder(next(folder for folder in (place, *place.parents) if folder.exists()))


def put_below(root: Path, scratch: Path, first: str = "") -> None:
    """Move all files below `scratch` to their places below `root`.

    The folder `first`, of images, goes first, so that annotations never name one that isn't there yet. Files that are
    there stay; one of the same name and another content is an error before anything is moved.
    """
    for path in scratch.rglob("*"):
        target = root / path.relative_to(scratch)
        same = target.is_dir() if path.is_dir() else target.is_file() and filecmp.cmp(path, target, shallow=False)
        if target.exists() and not same:
            raise UserError(f"{target} is there already, and is another; take it away, or name another --data-root")
    root.mkdir(parents=True, exist_ok=True)
    for path in sorted(scratch.iterdir(), key=lambda path: (path.name != first, path.name)):
        move(path, root / path.name)


def move(path: Path, target: Path) -> None:
    """Move a folder, at once where there is none of its name, or else what is in it, folders first."""
    if not target.exists():
        path.rename(target)
    elif path.is_dir():
        for child in sorted(path.iterdir(), key=lambda child: (child.is_file(), child.name)):
            move(child, target / child.name)

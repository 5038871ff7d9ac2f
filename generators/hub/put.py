"""Tells the names of the hub's folders, and moves finished files below a data root, none if one differs there.

In the hub's own cache, `datasets--OWNER--SET/snapshots/COMMIT` is a folder of links to `datasets--OWNER--SET/blobs`.
"""

import filecmp
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder, writing


def own_name(folder: Path) -> str:
    """The name of a folder of the hub; for one in the cache, the name of its data set."""
    place = folder.resolve()
    name = (place.parents[1] if place.parent.name == "snapshots" else place).name
    return name.rpartition("--")[2] if name.startswith("datasets--") else name


class ImportSummary(NamedTuple):
    """What was made of a folder of the hub."""

    benchmark: str
    folder: str
    """Folder of the images, below the data root."""
    records: Mapping[str, int]
    """Number of records by part of the benchmark, "" if it has only one; by data set if it was a webdataset."""
    images: int
    read: Sequence[str]
    """Tables that were read, or the split."""
    left_out: Sequence[str]
    """Tables or splits that were not read, and reasons for refusing samples, with their numbers."""
    note: str = ""
    """Text that says what else the benchmark needs."""
    warning: str = ""
    """Text that says what the made files can't be used for."""


@contextmanager
def scratch_below(root: Path) -> Iterator[Path]:
    """Yield a temporary folder on the disk of the data root, which needn't exist yet; errors of that disk name it."""
    place = root.absolute()
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    with writing(root), scratch_folder(there) as folder:
        yield folder


def put_below(root: Path, scratch: Path, first: str = "") -> None:
    """Move all files below `scratch` to the same paths below `root`; the folder `first`, of images, first, so that no
    annotations name an image that isn't there yet. Existing files are kept; if one differs from the new file of its
    name, this raises before anything is moved."""
    for path in scratch.rglob("*"):
        target = root / path.relative_to(scratch)
        same = target.is_dir() if path.is_dir() else target.is_file() and filecmp.cmp(path, target, shallow=False)
        if target.exists() and not same:
            raise UserError(f"{target} is there already, and is another; take it away, or name another --data-root")
    root.mkdir(parents=True, exist_ok=True)
    move(scratch, root, scratch / first)


def move(folder: Path, target: Path, first: Path) -> None:
    """Move what is in a folder to one that is there already: `first` and the folders that contain it before all
    others, then folders, then files. A file that is there already is kept."""
    for path in sorted(folder.iterdir(), key=lambda path: (not first.is_relative_to(path), path.is_file(), path.name)):
        its = target / path.name
        if not its.exists():
            path.rename(its)
        elif path.is_dir():
            move(path, its, first)

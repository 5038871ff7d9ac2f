"""Tells the names of the hub's folders, writes annotation files, and moves what is finished below a data root, nothing
if one file differs there.

In the hub's own cache, `datasets--OWNER--SET/snapshots/COMMIT` is a folder of links to `datasets--OWNER--SET/blobs`.
"""

import filecmp
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder, writing
from menagerie.generators.hub.forms import HubForm


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


class Unread:
    """Counts rows that can't be read, if they may be missing; else their errors are raised."""

    def __init__(self, allowed: bool) -> None:
        self.allowed, self.count, self.first = allowed, 0, ""

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count an error of a row."""
        try:
            yield
        except UserError as error:
            if not self.allowed:
                raise
            self.count += 1
            self.first = self.first or str(error)

    def told(self) -> list[str]:
        """What to print of them."""
        return [f"{self.count} rows that can't be read, the first: {self.first}"] if self.count else []


@contextmanager
def scratch_below(root: Path) -> Iterator[Path]:
    """Yield a temporary folder on the disk of the data root, which needn't exist yet; errors of that disk name it."""
    place = root.absolute()
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    with writing(root), scratch_folder(there) as folder:
        yield folder


def write_annotations(scratch: Path, form: HubForm, records: Mapping[str, Sequence[Any]]) -> str:
    """Write the annotation files. Returns a warning if they don't name photographs by their numbers in COCO or Visual
    Genome; else an empty text. Training needs these numbers to leave out the benchmark's photographs, and is refused
    without them."""
    warning = ""
    for part, rows in records.items() if form.files else ():
        path = scratch / form.files[part]
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".jsonl":
            text = "".join(json.dumps(record) + "\n" for record in rows)
        else:
            text = json.dumps({str(k): record for k, record in enumerate(rows)} if form.keyed else rows)
        path.write_text(text, encoding="utf-8")
        try:
            list(form.spec.photographs(path) if form.spec.photographs else ())
        except UserError:
            warning = (
                "its images aren't called by their collection's numbers, so studies/real_data.py refuses to train with "
                "this data root; for that, put the authors' files and images in place of these: " + form.spec.source
            )
    return warning


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

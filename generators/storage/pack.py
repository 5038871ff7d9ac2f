"""Puts pictures and texts into a split file, so that h5py alone, in anybody's code, trains from it.

Each subset gets `images` uint8 (n, h, w, 3), `masks` uint8 (n, h, w), `caption` and `false_caption` (n,), whose rows
are those of its columns, counterfactuals included. The attribute `pictures` of the subset is their digest.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.locks import FileLock
from menagerie.generators.storage.hdf5 import open_hdf5, read_attribute, write_attribute, write_hdf5
from menagerie.generators.storage.pictures import SplitPictures, map_pictures
from menagerie.generators.storage.records import Records, blocks
from menagerie.generators.storage.split_file import PICTURED, REMEDY, Split, read_split

DIGEST = "pictures"  # attribute of a subset


def pack(path: Path, progress: Callable[[str, int, int], None] | None = None) -> None:
    """Put pictures and texts into the split file at `path`, which is replaced whole; the same split gives the same
    bytes. A file that has them already, undamaged, stays as it is.

    Calls `progress` with the stage "scenes", the number of scenes done and their total.
    """
    read_split(path, verify=False)  # a file that can't be read leaves no lock
    with FileLock(path.parent / ".lock"):
        pack_opened(read_split(path), progress or (lambda stage, done, total: None))


def pack_opened(split: Split, progress: Callable[[str, int, int], None]) -> None:
    """Put pictures and texts into the file of an opened split, unless it has them, undamaged."""
    path = split.path
    if all(pictures_intact(split, subset) for subset in split.subsets):
        return
    pictures, done = SplitPictures(split), 0
    total = sum(len(records.columns["view"]) for records in split.subsets.values())
    widths = {subset: longest_texts(records) for subset, records in split.subsets.items()}
    columns = sum(column.nbytes for r in split.subsets.values() for column in r.columns.values())
    texts = sum(len(records.columns["view"]) * sum(widths[subset]) for subset, records in split.subsets.items())
    size = total * 4 * split.resolution**2 + texts

    def fill(file: h5py.File) -> None:
        nonlocal done
        with open_hdf5(path, REMEDY) as light:
            for name in light.attrs:
                write_attribute(file, name, read_attribute(light, name))
            for subset in split.subsets:
                group = file.create_group(subset)
                group.attrs["records"] = light[subset].attrs["records"]
                for name in split.subsets[subset].columns:
                    light.copy(light[subset][name], group)
        for subset, records in split.subsets.items():
            for rows in add_pictures(file[subset], subset, records, pictures, widths[subset]):
                done += rows
                progress("scenes", done, total)

    write_hdf5(path, fill, columns + size)


def add_pictures(
    group: h5py.Group, subset: str, records: Records, pictures: SplitPictures, widths: list[int]
) -> Iterator[int]:
    """Write the pictures and texts of a subset block by block; yield the number of rows in each."""
    n, side = len(records.columns["view"]), pictures.side
    forms = [((n, side, side, 3), "u1"), ((n, side, side), "u1"), *(((n,), f"S{width}") for width in widths)]
    tables = [group.create_dataset(name, *form) for name, form in zip(PICTURED, forms, strict=True)]
    hashed = hashlib.sha256()
    for rows in blocks(n):
        for table, values in zip(tables, (*pictures.both(subset, rows), *texts_at(records, rows)), strict=True):
            table[rows] = values = np.asarray(values, table.dtype)
            hashed.update(values.tobytes())
        yield rows.stop - rows.start
    write_attribute(group, DIGEST, hashed.hexdigest())


def longest_texts(records: Records) -> list[int]:
    """The bytes of the longest caption and of the longest false caption."""
    widths = [1, 1]
    for rows in blocks(len(records.columns["view"])):
        widths = [max(width, *map(len, texts)) for width, texts in zip(widths, texts_at(records, rows), strict=True)]
    return widths


def texts_at(records: Records, rows: slice) -> tuple[list[bytes], list[bytes]]:
    """The captions and false captions of some rows; an empty one where there is none."""
    true, false = records.captions_at(rows), records.negatives_at(rows)
    return [text.text.encode() for text in true], [text.text.encode() if text else b"" for text in false]


def pictures_intact(split: Split, subset: str) -> bool:
    """Whether the file has the pictures and texts of a subset as they were written."""
    try:
        found, hashed = map_pictures(split, subset), hashlib.sha256()
        with open_hdf5(split.path, REMEDY) as file:
            written = read_attribute(file[subset], DIGEST) if found else ""
    except UserError:
        return False
    for rows in blocks(len(split.subsets[subset].columns["view"])):
        for name in found:
            hashed.update(np.ascontiguousarray(found[name][rows]).tobytes())
    return hashed.hexdigest() == written


def check_intact(split: Split, subset: str) -> None:
    """Raise if the pictures and texts of a subset that the file holds aren't those that were written."""
    if map_pictures(split, subset) and not pictures_intact(split, subset):
        raise UserError(
            f"the images of {subset!r} in {split.path} have changed since they were written; run 'menagerie pack' again"
        )

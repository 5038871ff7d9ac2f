"""Packed splits: one self-contained HDF5 file.

Besides the split's tables, a packed file has the rows of the store that the split needs, in its only shard `/shards/0`.
Pixels have the same paths as through the links of a split file (`shards/0/images`), so that a packed split is read like
any other, from any folder.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
from jaxtyping import Int64

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file
from menagerie.generators.storage.image_store import Progress
from menagerie.generators.storage.pixels import PixelReader, open_split
from menagerie.generators.storage.shards import ROW_BYTES, Shard, codec_options, create_shard
from menagerie.generators.storage.split_file import Records, Split, write_tables
from menagerie.generators.storage.tables import PIXELS, Reserve, create_hdf5, hdf5_bytes, write_digests

Rows = Int64[np.ndarray, " n"]


def pack(path: Path, out: Path, codec: str = "none", progress: Progress | None = None) -> None:
    """Write the split at `path` with its pixels to `out`, whole or not at all; the same split gives the same bytes.

    Calls `progress` with the stage ("pack", then "check"), the number of images done and their total.
    """
    report = progress or (lambda stage, done, total: None)
    codec_options(codec)  # raises for an unknown codec
    check_free(out)
    split = open_split(path)
    rows, reader = needed_rows(split.subsets.values()), PixelReader(split)
    with whole_file(out) as temporary:
        with create_hdf5(temporary) as (file, reserve):
            packed = renumbered(split, rows, codec)
            reserve(len(hdf5_bytes(lambda file: write_tables(file, packed))))
            write_tables(file, packed)
            group = file.create_group("shards").create_group("0")
            write_pixels(group, reader, rows, codec, reserve, report)
        check_packed(temporary, reader, rows, report)


def check_free(out: Path, option: str = "--out") -> None:
    """Raise if `out` exists, or if its folder doesn't."""
    if out.exists():
        raise UserError(f"{out} is there already; choose another {option}")
    if not out.parent.is_dir():
        raise UserError(f"there is no folder {out.parent} to write {out.name} to; make it, or choose another {option}")


def needed_rows(subsets: Iterable[Records]) -> Rows:
    """The store's rows of scenes and partners, without duplicates, in the store's order."""
    rows = np.unique(np.concatenate([rows for r in subsets for rows in (r.rows, r.partners)]))
    return rows[rows >= 0]


def renumbered(split: Split, rows: Rows, codec: str) -> Split:
    """The same split over a single shard that holds only `rows`."""

    def new(old: Rows) -> Rows:
        return np.where(old < 0, -1, np.searchsorted(rows, old))

    subsets = {name: replace(r, rows=new(r.rows), partners=new(r.partners)) for name, r in split.subsets.items()}
    return replace(split, shards=[Shard("", 0, len(rows), codec)], subsets=subsets)


def write_pixels(
    group: h5py.Group, reader: PixelReader, rows: Rows, codec: str, reserve: Reserve, report: Progress
) -> None:
    """Copy `rows` into a new shard in `group`, one at a time: a split may be larger than the memory.

    Digests are copied; computing them here could give a damaged image a valid digest.
    """
    split, size = reader.split, reader.read(int(rows[0]), "masks").shape
    of_row = 4 * math.prod(size)  # bytes of an image and a mask; a codec makes a row at most `ROW_BYTES` longer
    reserve(len(rows) * (ROW_BYTES + (of_row if codec == "none" else 0)))
    create_shard(
        group, split.identity, split.vocabulary, reader.read_all(rows, "scenes"), size, codec, reader.areas(rows)
    )
    tables = {name: group[name] for name in PIXELS}
    for new, old in enumerate(rows.tolist()):
        reserve(of_row + ROW_BYTES)
        for name, table in tables.items():
            table[new] = reader.read(old, name)
        report("pack", new + 1, len(rows))
    write_digests(group, reader.digests(rows))


def check_packed(path: Path, reader: PixelReader, rows: Rows, report: Progress) -> None:
    """Raise unless the packed file opens as a split and has the pixels of the original."""
    packed = PixelReader(open_split(path))
    for new, old in enumerate(rows.tolist()):
        if any((packed.read(new, name) != reader.read(old, name)).any() for name in PIXELS):
            raise UserError(f"row {new} came back from the disk of {path.parent} as another image; check that disk")
        report("check", new + 1, len(rows))

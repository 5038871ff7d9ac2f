"""Shards: the immutable HDF5 files of an image store.

A shard holds `/images` uint8 (n, h, w, 3), `/masks` uint8 (n, h, w) with 0 for background and i + 1 for the scene's
thing i, and its part of the scene table; a checksum per image detects damage on disk. `/digests` uint8 (n, 2, 16)
identify each image and mask as rendered (generators/storage/tables.py). A shard with scenes in places of crowds also
holds `/areas` int32 (n, 8), the pixels that each thing covers without the others, or -1; other shards have none, and
what is hidden in their scenes is unknown.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
from jaxtyping import Float32, Int32, Int64, UInt8

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import whole_file
from menagerie.envs.core.validation import SIDE
from menagerie.envs.render.occlusion import UNKNOWN, hidden_shares
from menagerie.envs.scene import MOST_THINGS
from menagerie.generators.storage.tables import (
    DIGEST,
    DIGEST_BYTES,
    DIGESTS,
    PIXELS,
    checked_table,
    create_hdf5,
    digest_of_table,
    digests_of,
    open_hdf5,
    read_attribute,
    read_table,
    write_attribute,
    write_digests,
)
from menagerie.generators.vocabulary import SCENE_TYPE, Vocabulary, has_crowds

ROW_BYTES = 256  # at most, per row besides pixels: digests, checksums, positions
SHARD_TYPE = np.dtype([("file", "S32"), ("start", "i8"), ("rows", "i8"), ("codec", "S8")])
AREAS = "areas"


class Shard(NamedTuple):
    """One file of the store: name, first row, number of rows and compression."""

    file: str
    start: int
    rows: int
    codec: str


class ShardLocation(NamedTuple):
    """A shard's file, the group in that file, and what to do if the file is damaged."""

    file: Path
    group: str = "/"
    remedy: str = "delete it and run again: its scenes are rendered anew, nothing else is lost"


def shard_table(shards: Sequence[Shard]) -> np.ndarray:
    """Make an HDF5 table of shards."""
    return np.array([(s.file.encode(), s.start, s.rows, s.codec.encode()) for s in shards], SHARD_TYPE)


def read_shard_table(group: h5py.Group, name: str) -> list[Shard]:
    """Read a table of shards that `shard_table` made."""
    return shards_in(read_table(group, name, SHARD_TYPE))


def shards_in(table: np.ndarray) -> list[Shard]:
    """The shards of a table that `shard_table` made."""
    return [Shard(file.decode(), int(start), int(rows), codec.decode()) for file, start, rows, codec in table]


def by_shard(
    starts: Int64[np.ndarray, " shards"], rows: Int64[np.ndarray, " n"]
) -> Iterator[tuple[int, Int64[np.ndarray, " some"]]]:
    """Yield the number of each shard that has any of `rows`, and the positions in `rows` of those that it has."""
    shard = np.searchsorted(starts, rows, side="right") - 1
    order = np.argsort(shard, kind="stable")
    present, first = np.unique(shard[order], return_index=True)
    yield from zip(present.tolist(), np.split(order, first[1:]), strict=False)


class Rendered(NamedTuple):
    """Images and masks of n scenes, and the number of pixels that each of their things would cover without the
    others."""

    images: UInt8[np.ndarray, "n h w 3"]
    masks: UInt8[np.ndarray, "n h w"]
    areas: Int32[np.ndarray, "n things"]


def hidden_in(location: ShardLocation, codec: str) -> Float32[np.ndarray, "n things"]:
    """The share of each thing of a shard's scenes that others hide; NaN if unknown or no thing."""
    codec_options(codec)  # registers the codec's filter with HDF5
    with open_hdf5(location.file, location.remedy) as file:
        shard = file[location.group]
        return hidden_shares(read_areas(shard, len(shard["scenes"])), shard["masks"][:])


def check_shard(location: ShardLocation, identity: str) -> np.ndarray:
    """The scene table of a shard; raises if the shard is damaged or of another store."""
    largest = int(SIDE.high)
    with open_hdf5(location.file, location.remedy) as file:  # HDF5 detects a truncated file
        shard = file[location.group]
        if not isinstance(shard, h5py.Group):
            raise ValueError("it has a table in place of a shard")
        own_identity, scenes = read_attribute(shard, "identity"), read_table(shard, "scenes", SCENE_TYPE)
        areas = [read_areas(shard, len(scenes))] if has_crowds(scenes) else []
        if read_attribute(shard, DIGEST) != digest_of_table(scenes, *areas):
            raise ValueError("its scenes were changed since it was written")  # `open_hdf5` adds path and remedy
        check_pixels(shard, len(scenes), largest)
    check_identity(location.file, own_identity, identity)
    return scenes


def read_areas(shard: h5py.Group, rows: int) -> Int32[np.ndarray, "n things"]:
    """The number of pixels that each thing of a shard's scenes covers without the others; `UNKNOWN` if not kept."""
    if AREAS not in shard and not has_crowds(shard["scenes"][:]):
        return np.full((rows, MOST_THINGS), UNKNOWN, np.int32)
    areas = read_table(shard, AREAS, np.dtype("i4"), MOST_THINGS)
    if len(areas) != rows:
        raise ValueError("its tables differ in length")  # `open_hdf5` adds path and remedy
    return areas


def check_identity(path: Path, found: str, identity: str) -> None:
    """Raise if a file belongs to another store."""
    if found != identity:
        raise UserError(
            f"{path} belongs to store {found:.50}, not to {identity:.50}; keep each store in its own folder"
        )


def check_pixels(shard: h5py.Group, rows: int, largest: int) -> None:
    """Raise `ValueError` unless a shard has `rows` square images and masks, with sides of at most `largest`."""
    tables = [shard[name] for name in (*PIXELS, DIGESTS)]
    if any(not isinstance(table, h5py.Dataset) or len(table) != rows for table in tables):
        raise ValueError("its tables differ in length")  # `open_hdf5` adds path and remedy
    masks = shard["masks"]
    side = masks.shape[1] if isinstance(masks, h5py.Dataset) and masks.ndim == 3 else 0
    for name, shape in (("images", (rows, side, side, 3)), ("masks", (rows, side, side))):
        table = shard[name]
        if not isinstance(table, h5py.Dataset) or (table.shape, table.dtype) != (shape, np.uint8) or side > largest:
            raise ValueError(f"its {name} are no table {shape} of bytes")
        if table.chunks != (1, *shape[1:]) and rows:
            raise ValueError(f"its {name} don't lie one by one")
    checked_table(shard, DIGESTS, np.dtype("u1"), len(PIXELS), DIGEST_BYTES)


def codec_options(codec: str) -> dict:
    """h5py options for a codec: "none" (any HDF5 reader can open it), "lz4" or "zstd"."""
    if codec == "none":
        return {}
    import hdf5plugin

    codecs = {"lz4": hdf5plugin.LZ4, "zstd": hdf5plugin.Zstd}
    return dict(codecs[choose("codec", codec, ("none", *codecs))]())


def write_shard(
    path: Path,
    identity: str,
    vocabulary: Vocabulary,
    rows: np.ndarray,
    rendered: Rendered,
    codec: str = "none",
) -> None:
    """Write one shard with the digests of its pixels, whole or not at all."""
    images, masks, areas = rendered
    with whole_file(path) as temporary, create_hdf5(temporary) as (file, reserve):
        reserve(rows.nbytes + len(rows) * ROW_BYTES + images.nbytes + masks.nbytes)
        tables = create_shard(file, identity, vocabulary, rows, images.shape[1:3], codec, areas)
        for table, content in zip(tables, (images, masks), strict=True):
            table[:] = content
        write_digests(file, digests_of(vocabulary.decode(rows), images, masks))


def create_shard(
    group: h5py.Group,
    identity: str,
    vocabulary: Vocabulary,
    rows: np.ndarray,
    size: tuple[int, int],
    codec: str,
    areas: Int32[np.ndarray, "n things"],
) -> list[h5py.Dataset]:
    """Create a shard's tables for images of `size` (h, w): one chunk and one checksum (HDF5's fletcher32) per image.

    Returns the tables of images and masks, still empty; digests are written by `write_digests`. `areas` are kept if the
    shard has scenes of crowds.
    """
    kept = [areas] if has_crowds(rows) else []
    write_attribute(group, "identity", identity)
    write_attribute(group, "vocabulary", vocabulary.to_json(rows))
    write_attribute(group, DIGEST, digest_of_table(rows, *kept))
    group["scenes"] = rows
    for table in kept:
        group[AREAS] = table
    options = {"dtype": "u1", "fletcher32": True, **codec_options(codec)}
    return [
        group.create_dataset(name, (len(rows), *shape), chunks=(1, *shape), **options)
        for name, shape in (("images", (*size, 3)), ("masks", size))
    ]

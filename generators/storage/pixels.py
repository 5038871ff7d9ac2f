"""Images and masks of a split as arrays; doesn't import torch."""

import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int32, Int64, UInt8

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import check_accessible
from menagerie.envs.render.occlusion import hidden_shares
from menagerie.envs.scene import MOST_THINGS
from menagerie.generators.storage.open_shards import OPEN
from menagerie.generators.storage.shards import ShardLocation, by_shard, codec_options, read_areas
from menagerie.generators.storage.split_file import Split, check_store, read_split
from menagerie.generators.storage.tables import (
    BROKEN,
    DIGEST_BYTES,
    DIGESTS,
    PIXELS,
    digest_of,
    open_hdf5,
    read_table,
)


class PixelReader:
    """Reads images and masks of a split's rows; safe to use in forked workers."""

    def __init__(self, split: Split, verify: bool = True) -> None:
        """Without `verify`, rows that are all zero are returned unchecked, for audits."""
        self.split, self.verify = split, verify
        self.starts = np.array([shard.start for shard in split.shards])
        self._join()

    def _join(self) -> None:
        self._number = OPEN.reader()
        weakref.finalize(self, OPEN.forget, self._number).atexit = False

    def __getstate__(self) -> dict:
        return {name: value for name, value in self.__dict__.items() if name != "_number"}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._join()

    def read(self, row: int, name: str = "images") -> np.ndarray:
        """One row of the store: the image (h, w, 3) or the mask (h, w) as uint8, or the scene record."""
        index = int(np.searchsorted(self.starts, row, side="right")) - 1
        location = self.split.location(index)
        codec_options(self.split.shards[index].codec)  # registers the codec's filter with HDF5
        try:
            table = OPEN.table(self._number, index, location, name)
            found = np.asarray(table[row - self.starts[index]])
            if self.verify and name in PIXELS and not found.any():
                self._check_zeros(row, name, found)
            return found
        except BROKEN as error:
            check_accessible(location.file, error)
            raise UserError(
                f"the shard {location.file} is damaged at row {row} ({error}); {location.remedy}"
            ) from error

    def _check_zeros(self, row: int, name: str, pixels: np.ndarray) -> None:
        """Raise `ValueError` if pixels are all zero but weren't rendered so: HDF5's checksum doesn't detect zeroed
        data."""
        (digests,) = self.digests(np.array([row]))
        (scene,) = self.split.vocabulary.decode(self.read(row, "scenes")[None])
        if digests[PIXELS.index(name)].tobytes() != digest_of(scene, name, pixels):
            raise ValueError("its pixels were lost")

    def read_all(
        self, rows: Int64[np.ndarray, " n"], name: str = "images", out: UInt8[np.ndarray, "n ..."] | None = None
    ) -> np.ndarray:
        """Read all of `rows`, stacked, into `out` if it is given. Rows are read one by one, because fancy indices are a
        hundred times slower in HDF5, and in the store's order, so that each shard is opened once."""
        if out is None:
            first = self.read(int(rows[0]) if len(rows) else 0, name)  # gives the shape if there are no rows
            out = np.empty((len(rows), *first.shape), first.dtype)
        for i in np.argsort(rows, kind="stable").tolist():
            out[i] = self.read(int(rows[i]), name)
        return out

    def areas(self, rows: Int64[np.ndarray, " n"]) -> Int32[np.ndarray, "n things"]:
        """The pixels that each of up to eight things of `rows` covers without the others; -1 if unknown or no thing."""
        return self._by_shard(rows, shard_areas, np.empty((len(rows), MOST_THINGS), np.int32))

    def hidden(self, rows: Int64[np.ndarray, " n"]) -> Float32[np.ndarray, "n things"]:
        """The share of each of up to eight things of `rows` that others hide; NaN if unknown or no thing."""
        return hidden_shares(self.areas(rows), self.read_all(rows, "masks"))

    def digests(self, rows: Int64[np.ndarray, " n"]) -> UInt8[np.ndarray, "n 2 16"]:
        """The digests of the image and the mask of each of `rows`."""
        return self._by_shard(rows, shard_digests, np.empty((len(rows), len(PIXELS), DIGEST_BYTES), np.uint8))

    def _by_shard(
        self, rows: Int64[np.ndarray, " n"], read: Callable[[ShardLocation], np.ndarray], out: np.ndarray
    ) -> np.ndarray:
        """Fill `out` with the result of `read` for each of `rows`; only shards that have any of them are opened."""
        for index, mine in by_shard(self.starts, rows):
            out[mine] = read(self.split.location(index))[rows[mine] - self.starts[index]]
        return out


def shard_digests(location: ShardLocation) -> UInt8[np.ndarray, "n 2 16"]:
    with open_hdf5(location.file, location.remedy) as file:
        return read_table(file[location.group], DIGESTS, np.dtype("u1"), len(PIXELS), DIGEST_BYTES)


def shard_areas(location: ShardLocation) -> Int32[np.ndarray, "n things"]:
    with open_hdf5(location.file, location.remedy) as file:
        shard = file[location.group]
        return read_areas(shard, len(shard["scenes"]))


def open_split(path: Path) -> Split:
    """Open a split that is undamaged and consistent with the store around it; else raise."""
    split = read_split(path)
    check_store(split)
    return split

"""Images and masks of a split as arrays; doesn't import torch."""

import os
from pathlib import Path

import h5py
import numpy as np
from jaxtyping import Float32, Int32, Int64, UInt8

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import check_accessible, check_regular
from menagerie.envs.render.occlusion import hidden_shares
from menagerie.generators.storage.shards import ShardLocation, codec_options, read_areas
from menagerie.generators.storage.split_file import Split, check_store, read_split
from menagerie.generators.storage.tables import (
    BROKEN,
    DIGEST_BYTES,
    DIGESTS,
    PIXELS,
    digest_of,
    open_hdf5,
    open_to_read,
    read_table,
)


class PixelReader:
    """Reads images and masks of a split's rows; safe to use in forked workers."""

    def __init__(self, split: Split, verify: bool = True) -> None:
        """Without `verify`, rows that are all zero are returned unchecked, for audits."""
        self.split, self.verify = split, verify
        self.starts = np.array([shard.start for shard in split.shards])
        self._open: dict[tuple[int, int, str], h5py.Dataset] = {}  # a data set keeps its file open

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_open": {}}  # open files can't be pickled for spawned workers

    def read(self, row: int, name: str = "images") -> np.ndarray:
        """One row of the store as uint8: the image (h, w, 3) or mask (h, w), or its row of the scene table."""
        index = int(np.searchsorted(self.starts, row, side="right")) - 1
        # h5py handles must not cross a fork: each process opens its own.
        key = (os.getpid(), index, name)
        location = self.split.location(index)
        codec_options(self.split.shards[index].codec)  # registers the codec's filter with HDF5
        try:
            if key not in self._open:
                check_regular(location.file)
                self._open[key] = open_to_read(location.file)[f"{location.group}/{name}"]
            found = np.asarray(self._open[key][row - self.starts[index]])
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

    def read_all(self, rows: Int64[np.ndarray, " n"], name: str = "images") -> np.ndarray:
        """All of `rows`, stacked; read one by one, because fancy indices are a hundred times slower in HDF5."""
        first = self.read(int(rows[0]) if len(rows) else 0, name)  # gives the shape if there are no rows
        out = np.empty((len(rows), *first.shape), first.dtype)
        for i, row in enumerate(rows.tolist()):
            out[i] = self.read(row, name)
        return out

    def areas(self, rows: Int64[np.ndarray, " n"]) -> Int32[np.ndarray, "n things"]:
        """The pixels that each of up to eight things of `rows` covers without the others; -1 if unknown or no thing."""
        tables = [shard_areas(self.split.location(i)) for i in range(len(self.split.shards))]
        return np.concatenate(tables)[rows]

    def hidden(self, rows: Int64[np.ndarray, " n"]) -> Float32[np.ndarray, "n things"]:
        """The share of each of up to eight things of `rows` that others hide; NaN if unknown or no thing."""
        return hidden_shares(self.areas(rows), self.read_all(rows, "masks"))

    def digests(self, rows: Int64[np.ndarray, " n"]) -> UInt8[np.ndarray, "n 2 16"]:
        """The digests of the image and the mask of each of `rows`."""
        tables = [shard_digests(self.split.location(i)) for i in range(len(self.split.shards))]
        return np.concatenate(tables)[rows]  # shards are numbered consecutively


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

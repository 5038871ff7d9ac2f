"""Indexes of tar shards. An index has arrays of a shard's samples; it is saved in the folder `.index` beside the shard,
and made anew if the shard changes."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file
from menagerie.envs.core.progress import progress_bars
from menagerie.envs.core.reading import Inaccessible, check_regular, parse_json
from menagerie.envs.core.records import read_arrays
from menagerie.generators.sources.shard import read_shard
from menagerie.generators.sources.texts import Texts

VERSION = 2  # of the index's content: raise it when other samples are accepted or refused
FOLDER = ".index"
THREADS = 8  # reading headers mostly waits for the disk


class Index(NamedTuple):
    """The samples in a shard."""

    keys: Texts
    texts: Texts
    offsets: Int64[np.ndarray, " n"]
    """Position of each image's first byte in the shard."""
    sizes: Int64[np.ndarray, " n"]
    flickr: Int64[np.ndarray, " n"]
    """Flickr's number of each image; 0 if unknown."""
    refused: Mapping[str, int]
    """Number of refused samples, by reason."""


def indexes(shards: Sequence[Path]) -> list[Index]:
    """The indexes of shards in order; raises for a shard that is cut short."""
    with progress_bars("shards") as progress, ThreadPoolExecutor(THREADS) as threads:
        made = []
        for index in threads.map(index_of, shards):
            made.append(index)
            progress("shards", len(made), len(shards))
    return made


def index_of(shard: Path) -> Index:
    """Read a shard's saved index; if there is no valid one, make the index and try to save it."""
    try:
        check_regular(shard)
        state = shard.stat()
    except ValueError as error:
        raise UserError(f"{error}; get it again") from error
    signature = np.array([VERSION, state.st_size, state.st_mtime_ns], np.int64)
    path = shard.parent / FOLDER / f"{shard.name}.npz"
    index = read_index(path, signature)
    if index is None:
        samples, refused = read_shard(shard)
        columns = (np.array([sample[k] for sample in samples], np.int64) for k in (1, 2, 4))
        keys, texts = Texts(sample.key for sample in samples), Texts(sample.text for sample in samples)
        index = Index(keys, texts, *columns, dict(refused))
        with contextlib.suppress(OSError):  # the folder may be read-only
            write_index(path, signature, index)
    return index


def write_index(path: Path, signature: Int64[np.ndarray, " 3"], index: Index) -> None:
    letters = {name: np.frombuffer(getattr(index, name).letters, np.uint8) for name in ("keys", "texts")}
    ends = {f"{name}_ends": getattr(index, name).ends for name in ("keys", "texts")}
    numbers = {name: getattr(index, name) for name in ("offsets", "sizes", "flickr")}
    refused = np.frombuffer(json.dumps(dict(index.refused)).encode(), np.uint8)
    with whole_file(path) as temporary:
        np.savez(temporary, signature=signature, refused=refused, of=owner(path), **letters, **ends, **numbers)


def read_index(path: Path, signature: Int64[np.ndarray, " 3"]) -> Index | None:
    """Read the saved index of the shard with this signature; None if it is missing, damaged or of another shard."""
    try:
        arrays = read_arrays(path)
        wanted = owner(path)
        if not (np.array_equal(arrays["signature"], signature) and np.array_equal(arrays["of"], wanted)):
            return None
        texts = [Texts.from_arrays(arrays[name], arrays[f"{name}_ends"]) for name in ("keys", "texts")]
        refused = parse_json(arrays["refused"].tobytes(), path)
        index = Index(*texts, *(arrays[name] for name in ("offsets", "sizes", "flickr")), refused)
        return index if is_sound(index, int(signature[1])) else None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, Inaccessible):  # missing, or no index
        return None


def owner(path: Path) -> UInt8[np.ndarray, " letters"]:
    """The name of the shard that the index file at `path` belongs to, as bytes."""
    return np.frombuffer(path.stem.encode(), np.uint8)


def is_sound(index: Index, size: int) -> bool:
    """Whether an index is consistent with a shard of `size` bytes."""
    arrays = index[2:5]
    fits = all(array.dtype == np.int64 and array.shape == (len(index.keys),) for array in arrays)
    counted = isinstance(index.refused, dict) and all(type(count) is int for count in index.refused.values())
    if not fits or not counted or len(index.texts) != len(index.keys):
        return False
    ends = index.offsets + index.sizes
    return bool((index.offsets >= 0).all() and (index.sizes >= 0).all() and (ends <= size).all())

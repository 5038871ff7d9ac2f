"""Indexes of tar shards: arrays of a shard's samples, saved in the folder `.index` beside it, and made anew if it
changes."""

import contextlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int64

from menagerie.envs.core.progress import progress_bars
from menagerie.envs.core.reading import Inaccessible, Unreadable, check_regular, read_text
from menagerie.envs.core.records import unseal, write_record
from menagerie.generators.sources.rows import reading_foreign
from menagerie.generators.sources.shard import Sample, read_shard
from menagerie.generators.sources.texts import Texts

VERSION = 5  # of the index's content: raise it when other samples are accepted or refused
FOLDER = ".index"
THREADS = 8  # reading headers mostly waits for the disk


class Index(NamedTuple):
    """The samples in a shard."""

    keys: Texts
    offsets: Int64[np.ndarray, " n"]
    """Position of each image's first byte in the shard."""
    sizes: Int64[np.ndarray, " n"]
    texts: Texts
    flickr: Int64[np.ndarray, " n"]
    """Flickr's number of each image; 0 if unknown."""
    refused: Mapping[str, int]
    """Number of refused samples, by reason."""

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> "Index":
        """Make an index from columns, which are faster to save than rows."""
        offsets, sizes, flickr = (np.array(saved[name], np.int64) for name in ("offset", "size", "flickr"))
        return cls(Texts(saved["key"]), offsets, sizes, Texts(saved["text"]), flickr, saved["refused"])


def indexes(shards: Sequence[Path]) -> list[Index]:
    """The indexes of shards in order; raises for a shard that is cut short."""
    with progress_bars("shards") as progress, ThreadPoolExecutor(THREADS) as threads:
        made = []
        for index in threads.map(index_of, shards):
            made.append(index)
            progress("shards", len(made), len(shards))
    return made


def index_of(shard: Path) -> Index:
    """Read a shard's saved index; if there is none of the shard as it is, make the index and try to save it."""
    with reading_foreign(shard):
        owner = f"{VERSION} {shard.name!a} {check_regular(shard)} {shard.stat().st_mtime_ns}"
    path = shard.parent / FOLDER / f"{shard.name}.json"
    with contextlib.suppress(Unreadable, Inaccessible):  # missing, damaged or another's
        return Index.of(unseal(read_text(path), path, owner))
    samples, refused = read_shard(shard)
    saved = {name: [getattr(sample, name) for sample in samples] for name in Sample._fields} | {"refused": refused}
    with contextlib.suppress(OSError):  # the folder may be read-only
        write_record(path, saved, owner=owner)
    return Index.of(saved)

"""The index of a store: its shards, and the scene of each row. Rows are found by their scenes.

A store of up to `LARGE` rows has its whole index in `index.h5`, which is written anew when an addition has ended. Until
then new shards are listed in a journal (journal.py). A larger store lists its shards only in the journal, and finds
scenes by `index.keys` (scene_keys.py). Its `index.h5` has no store's identity, so that versions of this program that
know no journals refuse it.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
from jaxtyping import Int64

from menagerie.envs.core.errors import UserError
from menagerie.generators.storage.journal import REMEDY, append, entry_of, read_journal, write_journal
from menagerie.generators.storage.scene_keys import SceneKeys, as_bytes
from menagerie.generators.storage.shards import Shard, check_identity, read_shard_table, shard_table
from menagerie.generators.storage.tables import (
    DIGEST,
    digest_of_table,
    open_hdf5,
    read_attribute,
    read_table,
    write_attribute,
    write_hdf5,
)
from menagerie.generators.vocabulary import SCENE_TYPE, Vocabulary

INDEX, JOURNAL, KEYS = "index.h5", "index.journal", "index.keys"
LARGE = 1 << 20  # rows; index.h5 holds at most so many
LATER = "of a later version, in index.journal"  # identity of the index.h5 of a larger store
PART = 1 << 18  # rows that are read at once
STALE = 8  # keys are written anew if more than an eighth of them is missing
TRIES = 3


class StoreIndex:
    """The index of a store, as it was when it was read. Only the holder of the store's lock may `append` or `move`."""

    def __init__(self, folder: Path, identity: str) -> None:
        """Read the index; raises if it is damaged, or another store's."""
        self.folder, self.identity = folder, identity
        for left in reversed(range(TRIES)):
            try:
                return self._read()
            except UserError:  # perhaps it is written just now
                if not left:
                    raise

    def _read(self) -> None:
        # The journal first: a writer that moves it to index.h5 deletes it afterwards.
        journal = read_journal(self.folder / JOURNAL, self.identity)
        self.later, listed, self._table = read_tables(self.folder / INDEX, self.identity)
        moved = sum(shard.start < len(self._table) for shard in journal.shards)
        self.journal, self.shards = journal, listed + journal.shards[moved:]
        self._first = len(listed) - moved  # the number of the shard in the journal's first entry
        self._check(moved)
        self._starts = np.array([shard.start for shard in self.shards], np.int64)
        self._rows = sum(shard.rows for shard in self.shards)
        self._keys: list[SceneKeys] = []

    def _check(self, moved: int) -> None:
        """Raise unless rows are numbered without a gap, and the journal's `moved` entries are as index.h5 has them."""
        if self.later and not self.shards:
            raise UserError(
                f"{self.folder / JOURNAL} is missing, which lists the shards of this store; bring it back, or delete "
                f"{INDEX} too and run again: all is rendered anew"
            )
        start = 0
        for shard in self.shards:
            if shard.start != start:
                raise UserError(f"{self.folder / JOURNAL} lists rows that don't follow those of {INDEX}; {REMEDY}")
            start += shard.rows
        for number, shard in enumerate(self.journal.shards[:moved]):
            there = self._table[shard.start : shard.start + shard.rows]
            if not np.array_equal(as_bytes(self.journal.entry(number)), as_bytes(there)):
                raise UserError(f"{self.folder / JOURNAL} lists {shard.file} with other scenes than {INDEX}; {REMEDY}")

    def __len__(self) -> int:
        """The number of rows."""
        return self._rows

    def records(self, rows: Int64[np.ndarray, " n"]) -> np.ndarray:
        """The scene records of some rows."""
        found, inside = np.empty(len(rows), SCENE_TYPE), rows < len(self._table)
        found[inside] = self._table[rows[inside]]
        others = rows[~inside]
        shard = np.searchsorted(self._starts, others, side="right") - 1
        found[~inside] = self.journal.records(shard - self._first, others - self._starts[shard])
        return found

    def part(self, start: int, end: int) -> np.ndarray:
        """The scene records of rows `start` to `end`."""
        return self.records(np.arange(start, end))

    def parts(self, start: int = 0) -> Iterator[np.ndarray]:
        """Yield the scene records from row `start` on, block by block."""
        for first in range(start, len(self), PART):
            yield self.part(first, min(first + PART, len(self)))

    def table(self) -> np.ndarray:
        """The scene records of all rows."""
        return self._table if len(self) == len(self._table) else self.part(0, len(self))

    def find(self, wanted: np.ndarray) -> Int64[np.ndarray, " n"]:
        """The row of each of the `wanted` scene records; -1 where there is none."""
        found = np.full(len(wanted), -1, np.int64)
        for keys in self._runs():
            left = found < 0
            found[left] = keys.find(wanted[left], self.records)
        return found

    def _runs(self) -> list[SceneKeys]:
        """The keys of all rows in sorted runs: first those of rows that were added after the file of keys was written,
        then those in the file, if there is one."""
        if not self._keys:
            kept = SceneKeys.load(self.folder / KEYS, self._salt) if self.later else None
            start = len(kept) if kept else 0
            self._keys = [SceneKeys.of(self.parts(start), start), *([kept] if kept else [])]
        return self._keys

    def _salt(self, rows: int) -> bytes:
        """A digest of the first `rows` rows, which must be those of whole shards."""
        entries = int(np.searchsorted(self._starts, rows))
        return hashlib.blake2b(b"".join([self.identity.encode(), *self.journal.digests[:entries]])).digest()

    def append(self, file: str, records: np.ndarray, codec: str) -> None:
        """List the next shard. Its scenes can be found only once the index is read again."""
        append(self.journal, Shard(file, len(self), len(records), codec), records, self.identity)
        self.shards.append(self.journal.shards[-1])
        self._rows += len(records)

    def move(self, vocabulary: Vocabulary) -> bool:
        """Bring the files to the form for this number of rows; returns whether there was anything to do."""
        if len(self) <= LARGE:
            return self._move_to_tables(vocabulary)
        return self._move_to_journal(vocabulary) or self._keep_keys()

    def _move_to_tables(self, vocabulary: Vocabulary) -> bool:
        if len(self) > len(self._table):
            write_tables(self.folder / INDEX, self.identity, vocabulary, self.shards, self.table())
        there = self.journal.path.exists()
        self.journal.path.unlink(missing_ok=True)
        return there

    def _move_to_journal(self, vocabulary: Vocabulary) -> bool:
        if len(self._table):
            parts = ((shard, self.part(shard.start, shard.start + shard.rows)) for shard in self.shards)
            write_journal(self.journal.path, (entry_of(shard, part, self.identity) for shard, part in parts))
        if not self.later:
            write_tables(self.folder / INDEX, LATER, vocabulary, [], np.empty(0, SCENE_TYPE))
        return not self.later

    def _keep_keys(self) -> bool:
        since, *kept = self._runs()
        if len(since) * STALE <= len(self):
            return False
        since.behind(*kept).save(self.folder / KEYS, self._salt(len(self)))
        return True


def index_to_extend(folder: Path, identity: str, vocabulary: Vocabulary) -> StoreIndex:
    """Bring the files of an index to the form for its number of rows, and read it. Only for the holder of the store's
    lock."""
    index = StoreIndex(folder, identity)
    while index.move(vocabulary):
        index = StoreIndex(folder, identity)
    return index


def read_tables(path: Path, identity: str) -> tuple[bool, list[Shard], np.ndarray]:
    """Read index.h5: whether the store is a large one, its shards and its scene table. Of a large store there are none,
    because the journal has them.

    A store without the file is empty.
    """
    if not path.exists():
        return False, [], np.empty(0, SCENE_TYPE)
    with open_hdf5(path, REMEDY) as file:
        shards, scenes = read_shard_table(file, "shards"), read_table(file, "scenes", SCENE_TYPE)
        if read_attribute(file, DIGEST) != digest_of_table(scenes, shard_table(shards)):
            raise ValueError("it was changed since it was written")
        found = read_attribute(file, "identity")
        if found == LATER and not shards:
            return True, shards, scenes
        check_identity(path, found, identity)
        return False, shards, scenes


def write_tables(path: Path, identity: str, vocabulary: Vocabulary, shards: list[Shard], scenes: np.ndarray) -> None:
    """Write index.h5, whole or not at all."""
    listed = shard_table(shards)

    def fill(file: h5py.File) -> None:
        write_attribute(file, "identity", identity)
        write_attribute(file, "vocabulary", vocabulary.to_json(scenes))
        file["scenes"], file["shards"] = scenes, listed
        write_attribute(file, DIGEST, digest_of_table(scenes, listed))

    write_hdf5(path, fill)

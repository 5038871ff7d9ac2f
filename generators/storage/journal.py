"""A journal of shards: a file to which each new shard of a store appends its entry.

An entry is a header with the shard's name, first row, number of rows and codec, the records of its scenes, and a digest
of both. An append that was interrupted leaves a last entry that isn't whole; it counts as never made, and the next
append replaces it. Any other entry that isn't as written is damage.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
from jaxtyping import Int64, UInt8
from numpy.lib.stride_tricks import sliding_window_view

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file, writing
from menagerie.envs.core.reading import open_file, reading
from menagerie.generators.storage.shards import SHARD_TYPE, Shard, shard_table, shards_in
from menagerie.generators.vocabulary import SCENE_TYPE

MARK, CHECK, DIGEST = b"mgshard1", 8, 16  # bytes
HEADER = len(MARK) + SHARD_TYPE.itemsize + CHECK
REMEDY = "delete it and run again: what it lists is rendered anew"


@dataclass
class Journal:
    """The whole entries of a journal. Records stay on the disk, mapped into memory."""

    path: Path
    shards: list[Shard] = field(default_factory=list)
    places: Int64[np.ndarray, " shards"] = field(default_factory=lambda: np.empty(0, np.int64))
    """The byte at which the records of each shard begin."""
    digests: list[bytes] = field(default_factory=list)
    size: int = 0
    """Bytes of whole entries."""
    content: UInt8[np.ndarray, " bytes"] = field(default_factory=lambda: np.empty(0, np.uint8))

    def records(self, number: Int64[np.ndarray, " n"], row: Int64[np.ndarray, " n"]) -> np.ndarray:
        """The scene record in `row` of the entry with this `number`, for each pair."""
        if not len(row):
            return np.empty(0, SCENE_TYPE)
        windows = sliding_window_view(self.content, SCENE_TYPE.itemsize)
        return windows[self.places[number] + SCENE_TYPE.itemsize * row].view(SCENE_TYPE)[:, 0]

    def entry(self, number: int) -> np.ndarray:
        """The scene records of an entry."""
        start, rows = int(self.places[number]), self.shards[number].rows
        return np.asarray(self.content[start : start + rows * SCENE_TYPE.itemsize]).view(SCENE_TYPE)


def read_journal(path: Path, identity: str) -> Journal:
    """The whole entries of a store's journal, none if there is no file; raises if it is damaged or another store's."""
    journal, places = Journal(path), []
    try:
        file = open_file(path)
    except UserError:
        if path.exists() or path.is_symlink():
            raise
        return journal
    with file, reading(path):
        end = os.fstat(file.fileno()).st_size
        while found := read_entry(file, path, identity, end):
            shard, digest = found
            journal.shards.append(shard)
            journal.digests.append(digest)
            places.append(journal.size + HEADER)
            journal.size = file.tell()
        if journal.size:
            journal.content = np.memmap(file, np.uint8, "r", shape=(journal.size,))
    journal.places = np.array(places, np.int64)
    return journal


def read_entry(file: BinaryIO, path: Path, identity: str, end: int) -> tuple[Shard, bytes] | None:
    """The next entry's shard and digest; None at the file's end, or before an entry that isn't whole."""
    header = file.read(HEADER)
    if len(header) < HEADER or not any(header):
        return None
    if header != header_of(header[len(MARK) : -CHECK], identity):
        raise UserError(f"{path} is damaged at byte {file.tell() - HEADER}, or another store's; {REMEDY}")
    (shard,) = shards_in(np.frombuffer(header[len(MARK) : -CHECK], SHARD_TYPE))
    size = shard.rows * SCENE_TYPE.itemsize
    if file.tell() + size + DIGEST > end:
        return None
    digest = digest_of_entry(header, file.read(size), identity)
    if digest == file.read(DIGEST):
        return shard, digest
    if file.tell() == end:
        return None
    raise UserError(f"{path} is damaged in the entry of {shard.file}; {REMEDY}")


def entry_of(shard: Shard, records: np.ndarray, identity: str) -> bytes:
    """The bytes of a new entry."""
    header = header_of(shard_table([shard]).tobytes(), identity)
    rows = np.ascontiguousarray(records).tobytes()
    return header + rows + digest_of_entry(header, rows, identity)


def header_of(shard: bytes, identity: str) -> bytes:
    return MARK + shard + hashlib.blake2b(MARK + shard + identity.encode(), digest_size=CHECK).digest()


def digest_of_entry(header: bytes, records: bytes, identity: str) -> bytes:
    hashed = hashlib.blake2b(header + identity.encode(), digest_size=DIGEST)
    hashed.update(records)
    return hashed.digest()


def append(journal: Journal, shard: Shard, records: np.ndarray, identity: str) -> None:
    """Append an entry after the whole ones and flush it to disk. Only the holder of the store's lock may do this."""
    entry = entry_of(shard, records, identity)
    with writing(journal.path):
        file = os.open(journal.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            os.ftruncate(file, journal.size)
            os.lseek(file, journal.size, os.SEEK_SET)
            left = memoryview(entry)
            while left:
                left = left[os.write(file, left) :]
            os.fsync(file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(file, journal.size)
            raise
        finally:
            os.close(file)
    journal.shards.append(shard)
    journal.size += len(entry)


def write_journal(path: Path, entries: Iterable[bytes]) -> None:
    """Write a journal of these entries, whole or not at all."""
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.writelines(entries)

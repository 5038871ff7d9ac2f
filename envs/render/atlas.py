"""The atlas: everything that scenes of a world at one resolution are put together from, in one file that processes map.

The file is a row of records, each at a multiple of `SLOT` bytes: a header with the record's key, then a body. Writers
append under a lock; readers need none. A writer writes an empty header, the body, an empty slot behind it and at last
the header. A whole header thus has its body behind it, and what a killed writer left counts as empty: the next record
goes there. A file is never cut, because a map of what was cut off would kill the process that reads it: where a header
is damaged, or the file is none of ours, the sound records before go to a new file.
"""

import errno
import mmap
import os
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
from jaxtyping import UInt8

from menagerie.envs.core.files import Unwritable, whole_file, writing
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.reading import Unreadable, open_file, reading

Key = tuple[str | int, ...]
SLOT = 64
# Of a record: mark, place, bytes without the header's slot, bytes of the key, checksum of the body, and the checksum of
# all these, the key and the file's name.
HEADER = struct.Struct("<8sQQIII")
MARK = b"a record"
EMPTY = bytes(SLOT)
# Of places that can't be written to or have no locks: records stay in memory there.
PLACE_ERRORS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EROFS, errno.EACCES, errno.EPERM}
NUMBERS = (np.uint8, np.float32, np.int64, np.float64)  # as which the compositor reads the atlas


class Atlas:
    """Records by key, in a file or, without a `path`, in the memory of this process.

    `index` says where the body of each record lies, in bytes from the file's start. The last record of a key counts. A
    body is compared with its checksum once, by `check`, before this process uses it; `checked` is the index of those.
    Where the folder can't be written to, new records stay in memory. A copy of the object in another process opens the
    file anew.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path, self._in_memory, self._room = path, path is None, np.empty(0, np.uint8)
        self._forget()

    def _forget(self, file: object = None) -> None:
        self._file, self._end, self._is_damaged = file, 0, False
        self.index: dict[Key, int] = {}
        self.checked: dict[Key, int] = {}
        self._checksums: dict[int, tuple[int, int]] = {}  # of a body: its bytes and their checksum
        self._show(np.empty(0, np.uint8))

    def __reduce__(self) -> tuple[type, tuple[Path | None]]:
        return Atlas, (self.path,)

    def _show(self, content: UInt8[np.ndarray, " bytes"]) -> None:
        """Set `views`: the content as arrays of each type of `NUMBERS`, which can't be written to."""
        content = content.view()
        content.flags.writeable = False
        self.views = tuple(content.view(kind) for kind in NUMBERS)

    def refresh(self) -> None:
        """Learn of the records that were appended since the last time, or of all if the file was replaced."""
        if self._in_memory:
            return
        try:
            file = open_file(self.path, buffering=0)
        except Unreadable:  # not there, or a folder or a device, whose replacement is up to the next writer
            self._forget()
            self._is_damaged = os.path.lexists(self.path)
            return
        with file, reading(self.path):
            state = os.fstat(file.fileno())
            if self._file != (state.st_dev, state.st_ino) or state.st_size < self._end:
                self._forget((state.st_dev, state.st_ino))
            while self._learn(file, state.st_size):
                pass
            if self._end > len(self.views[0]):
                self._show(np.frombuffer(mmap.mmap(file.fileno(), self._end, access=mmap.ACCESS_READ), np.uint8))

    def _learn(self, file: BinaryIO, size: int) -> bool:
        """Read the header at the end of what is known; returns whether there is a whole record."""
        slot = os.pread(file.fileno(), SLOT, self._end)
        if len(slot) < SLOT or slot == EMPTY:
            return False
        mark, place, length, letters, checksum, of_header = HEADER.unpack_from(slot)
        key = os.pread(file.fileno(), min(letters, size), self._end + SLOT)
        own = zlib.crc32(slot[: HEADER.size - 4] + key, self._seed())
        self._is_damaged = (mark, place, of_header) != (MARK, self._end, own)
        if self._is_damaged or self._end + SLOT + length > size:
            return False
        start = self._end + SLOT + padded_length(letters)
        self.index[msgspec.json.decode(key, type=tuple)] = start
        self._end += SLOT + length
        self._checksums[start] = self._end - start, checksum
        return True

    def _seed(self) -> int:
        return zlib.crc32(self.path.name.encode()) if self.path else 0

    def check(self, keys: Iterable[Key]) -> None:
        """Compare the bodies of keys with their checksums; a damaged one leaves the index."""
        for key in keys:
            if (start := self.index.get(key)) is not None:
                length, checksum = self._checksums[start]
                if zlib.crc32(self.views[0][start : start + length]) == checksum:
                    self.checked[key] = start
                else:
                    del self.index[key]

    def append(self, key: Key, body: UInt8[np.ndarray, " bytes"]) -> None:
        """Add a record, unless another process has added one of this key in the meantime. Raises `Unwritable`."""
        if not self._in_memory:
            try:
                return self._append_to_file(key, body)
            except Unwritable as error:
                if error.errno not in PLACE_ERRORS:
                    raise
            self._in_memory = True
        start, self._end = self._end, self._end + padded_length(len(body))
        if self._end > len(self._room):
            self._room = np.empty(2 * self._end, np.uint8)
            self._room[:start] = self.views[0][:start]
            self._show(self._room)
        self._room[start : start + len(body)] = body
        self.index[key] = self.checked[key] = start

    def _append_to_file(self, key: Key, body: UInt8[np.ndarray, " bytes"]) -> None:
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_suffix(".lock")):
            self.refresh()
            if key in self.index:
                return
            if self._is_damaged:
                self._mend()
            self._write(msgspec.json.encode(key), body.tobytes().ljust(padded_length(len(body)), b"\0"))
            self.refresh()
        self.checked[key] = self.index[key]

    def _write(self, key: bytes, body: bytes) -> None:
        start, content = self._end, key.ljust(padded_length(len(key)), b"\0") + body
        header = HEADER.pack(MARK, start, len(content), len(key), zlib.crc32(body), 0)[:-4]
        header += struct.pack("<I", zlib.crc32(header + key, self._seed()))
        with writing(self.path), open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", 0) as file:
            for place, part in ((start, EMPTY), (start + SLOT, content + EMPTY), (start, header)):
                file.seek(place)
                while part:
                    part = part[file.write(part) :]

    def _mend(self) -> None:
        """Put a file with the sound records in the place of the file. Those who have mapped that one keep it."""
        with whole_file(self.path) as temporary, writing(self.path, temporary):
            temporary.write_bytes(self.views[0])
        self.refresh()


def padded_length(length: int) -> int:
    """Return the bytes of the slots that `length` bytes need."""
    return -(-length // SLOT) * SLOT

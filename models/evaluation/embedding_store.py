"""Embeddings of images on disk: a row of bytes for each image's fingerprint, up to a limit in bytes.

A file holds records of equal length for several images: fingerprint, digest, row. Files appear whole, so several
processes can share a folder, and killed ones do no harm. A damaged record, or one of another model, fails its digest
and is computed again. Beyond the limit, the files that were used longest ago are deleted.
"""

import contextlib
import hashlib
import os
import warnings
from collections.abc import Mapping
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.reading import Inaccessible, check_regular, open_file

SUFFIX = ".embeddings"
DIGEST = 32  # bytes of a SHA-256
ROOM = 8  # a process recounts the files after adding a `ROOM`th of the limit; as much is freed at once


class EmbeddingFolder:
    """The embeddings of all models below one folder, at most `limit` bytes in total."""

    def __init__(self, folder: Path, limit: int) -> None:
        """Make the folder if needed; raise if it can't be made."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"embeddings of images can't be kept in {folder} ({error.strerror}); choose another --embeddings, or "
                "keep none by --embeddings-limit 0"
            ) from error
        self.folder, self.limit = folder, limit
        self._left = 0  # bytes that may be added before files are counted again, because other processes add files too

    def add(self, path: Path, content: bytes) -> None:
        """Write a file; then delete old files if all together may have exceeded the limit."""
        with whole_file(path) as temporary:
            temporary.write_bytes(content)
        self._left -= len(content)
        if self._left < 0:
            self._left = self._trim()

    def _trim(self) -> int:
        """Delete the files that were used longest ago if the limit is exceeded. Return the number of bytes that may be
        added before the next count."""
        with FileLock(self.folder / ".lock"):
            files: list[tuple[int, int, Path]] = []
            for path in self.folder.glob(f"*/*{SUFFIX}"):
                with contextlib.suppress(FileNotFoundError):  # another process may have deleted it
                    state = path.stat()
                    files.append((state.st_mtime_ns, state.st_size, path))
            total = sum(size for _, size, _ in files)
            goal = self.limit if total <= self.limit else self.limit - self.limit // ROOM
            for _, size, path in sorted(files):
                if total <= goal:
                    break
                path.unlink(missing_ok=True)
                total -= size
        return min(self.limit - total, self.limit // ROOM)


class StoredRows:
    """The stored rows of one model: the embedding of each image, in `width` bytes."""

    def __init__(self, files: EmbeddingFolder, owner: str, width: int) -> None:
        """`owner` is a name for everything that decides the rows except the images."""
        self._files, self._folder, self._length = files, files.folder / owner, 2 * DIGEST + width
        self._owner = owner.encode()
        self._places: dict[bytes, tuple[Path, int]] = {}
        self._used: set[Path] = set()
        for path in sorted(self._folder.glob(f"[!.]*{SUFFIX}")):
            with contextlib.suppress(OSError, ValueError, Inaccessible), open_file(path, files.limit, 0) as file:
                for offset in range(0, check_regular(path) - self._length + 1, self._length):
                    file.seek(offset)
                    self._places[file.read(DIGEST)] = path, offset

    def __contains__(self, fingerprint: str) -> bool:
        return bytes.fromhex(fingerprint) in self._places

    def get(self, fingerprint: str) -> bytes | None:
        """The row of an image; None if it is missing or damaged."""
        key = bytes.fromhex(fingerprint)
        if key not in self._places:
            return None
        path, offset = self._places[key]
        found = self._read(path, offset)
        row = found[2 * DIGEST :]
        if found != record_bytes(self._owner, key, row):
            self._places = {key: place for key, place in self._places.items() if place[0] != path}
            path.unlink(missing_ok=True)  # its images are encoded again
            return None
        if path not in self._used:
            self._used.add(path)
            with contextlib.suppress(OSError):
                os.utime(path)
        return row

    def put(self, rows: Mapping[str, bytes]) -> None:
        """Save the rows of several images, unless they are larger than the limit. A full disk only causes a warning."""
        content = b"".join(record_bytes(self._owner, bytes.fromhex(key), row) for key, row in rows.items())
        if len(content) != len(rows) * self._length:
            raise ValueError("rows of another width")
        if len(content) > self._files.limit:
            return
        path = self._folder / (hashlib.sha256("".join(rows).encode()).hexdigest()[:24] + SUFFIX)
        try:
            self._files.add(path, content)
        except OSError as error:
            warnings.warn(f"embeddings of images can't be kept in {self._folder}: {error.strerror}", stacklevel=2)
            return
        self._places |= {bytes.fromhex(key): (path, n * self._length) for n, key in enumerate(rows)}

    def _read(self, path: Path, offset: int) -> bytes:
        """Read a record; returns fewer bytes at the file's end, and none if another process has deleted the file."""
        with contextlib.suppress(OSError, ValueError, Inaccessible), open_file(path, buffering=0) as file:
            file.seek(offset)
            return file.read(self._length)
        return b""


def record_bytes(owner: bytes, key: bytes, row: bytes) -> bytes:
    """Return the bytes of a record: key, digest and row. The digest also covers `owner`, the name of the model's
    folder."""
    return key + hashlib.sha256(owner + b"\0" + key + row).digest() + row

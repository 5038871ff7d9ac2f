"""Locks between processes of one machine, or of several on a file system with `flock`."""

import fcntl
from pathlib import Path
from typing import IO


class FileLock:
    """A lock on a file, which the kernel frees when the holding process ends, also if it is killed.

    `with FileLock(path): ...` waits for it. The file is never deleted: that would let two processes hold it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None

    def acquire(self, wait: bool = True) -> bool:
        """Take the lock exclusively; without `wait`, return False if another process holds it."""
        file = self.path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        return True

    def share(self) -> None:
        """Take the lock shared with others; an exclusive one becomes shared."""
        self._file = self._file or self.path.open("a")
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "FileLock":
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

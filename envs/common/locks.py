"""Locks between processes of one machine, or of several on a file system that knows them."""

import fcntl
from pathlib import Path
from typing import IO


class FileLock:
    """A lock on a file, which the kernel frees when its holder ends, however it ends.

    `with FileLock(path): ...` waits for it. The file stays where it is: deleting it would let two hold it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None

    def acquire(self, wait: bool = True) -> bool:
        """Hold the lock, alone; without `wait`, False where another has it."""
        file = self.path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        return True

    def share(self) -> None:
        """Hold the lock together with all that share it; one that is held alone becomes shared."""
        self._file = self._file or self.path.open("a")
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def release(self) -> None:
        """Let others have it."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "FileLock":
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

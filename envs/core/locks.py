"""Locks between processes of one machine, or of several on a file system with `flock`."""

import errno
import fcntl
import os
from pathlib import Path
from typing import IO

from menagerie.envs.core.files import Unwritable

OF_THE_PLACE = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EROFS, errno.EACCES, errno.EPERM}


class FileLock:
    """A lock on a file. The kernel frees the lock when the process that holds it ends, even if it is killed.

    `with FileLock(path): ...` waits for the lock. The file is never deleted, because two processes could then hold it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None

    def acquire(self, wait: bool = True) -> bool:
        """Take the lock exclusively; without `wait`, return False if it is taken. Raises `Unwritable`."""
        file = self._opened()
        try:
            self._lock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        return True

    def _opened(self) -> IO[str]:
        try:
            return self.path.open("a")
        except OSError as error:
            raise self._refused(error) from error

    def _lock(self, file: IO[str], how: int) -> None:
        try:
            fcntl.flock(file, how)
        except BlockingIOError:
            raise
        except OSError as error:  # it has no path, so name it
            file.close()
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> Unwritable:
        reason = os.strerror(error.errno) if error.errno else error
        way = "; choose a place that may be written to and whose file system has locks" * (error.errno in OF_THE_PLACE)
        return Unwritable(f"{self.path} can't be locked ({reason}){way}", error.errno or 0)

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

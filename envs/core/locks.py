"""Locks between processes of one machine, or of several on a file system with `flock`."""

from pathlib import Path

import filelock

from menagerie.envs.core.files import Unwritable


class FileLock(filelock.FileLock):
    """A lock on a file, which is never deleted. The kernel frees the lock when the process that holds it ends, even if
    it is killed. `with FileLock(path): ...` waits for it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, fallback_to_soft=False)

    def acquire(self, wait: bool = True) -> bool:
        """Take the lock; without `wait`, return False if it is taken. Raises `Unwritable`."""
        try:
            super().acquire(blocking=wait)
        except filelock.Timeout:
            return False
        except (OSError, NotImplementedError) as error:
            why = f"{self.lock_file} can't be locked ({getattr(error, 'strerror', None) or error})"
            number = getattr(error, "errno", None) or 0
            raise Unwritable(f"{why}; choose a place that may be written to and has locks", number) from error
        return True

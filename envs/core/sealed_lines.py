"""A file of our records to which lines are added one by one, by several threads and processes at once."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from menagerie.envs.core.files import writing
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.reading import read_lines
from menagerie.envs.core.records import sealed, unsealed

LONGEST_LINE, LARGEST = 1 << 20, 16 << 30  # bytes of a line and of the file


class SealedLines:
    """The lines of `path`, each an object with its digest. The digest also covers `owner`, the name of what the lines
    belong to.

    Each line is added in one write. Reading skips lines that a killed process left half-written, lines damaged on disk,
    and lines of another owner.
    """

    def __init__(self, path: Path, owner: str) -> None:
        self.path, self.owner = path, owner

    def read(self, take: Callable[[Any], None]) -> int:
        """Pass each line's object to `take`, which raises `ValueError` for an object to skip; return the number of
        lines skipped. Raises `Unreadable` if the file can't be read."""
        passed = 0
        if not self.path.exists() and not self.path.is_symlink():
            return passed
        for line in read_lines(self.path, LONGEST_LINE, LARGEST):
            try:
                take(unsealed(line.decode(), "a line", self.owner))
            except ValueError:
                passed += 1
        return passed

    def add(self, content: dict[str, Any]) -> None:
        """Add an object as a line. Raises `Unwritable`."""
        line = sealed(content, salt=self.owner).encode()
        with writing(self.path), FileLock(self.path.parent / "lock"), self.path.open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":  # a killed process left half a line
                line = b"\n" + line
            os.write(file.fileno(), line + b"\n")

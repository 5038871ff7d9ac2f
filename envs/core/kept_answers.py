"""What a model answered, on disk: a file to which lines are added one by one, by several threads and processes at
once."""

import contextlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_text, writing
from menagerie.envs.core.identity import digest
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.reading import Unreadable, read_lines
from menagerie.envs.core.records import seal, unseal

LONGEST_LINE, LARGEST = 1 << 20, 16 << 30  # bytes of a line and of the file

Value = TypeVar("Value")


class KeptAnswers(ABC, Generic[Value]):
    """The answers of one model by their keys: a folder below `root` with the model's identity, and a file with a line
    for each answer.

    The folder's name depends on the identity, so that other models, and other settings of a model, have folders of
    their own. Each line has a digest that also covers this name, and is added in one write. Lines that a killed process
    left half-written, lines damaged on disk and lines of another folder are skipped. Of two answers under one key the
    first counts, in all processes.
    """

    about: ClassVar[str]
    """Name of the file with the identity."""
    file: ClassVar[str]
    """Name of the file with the answers."""

    def __init__(self, root: Path, name: str, identity: Mapping[str, Any]) -> None:
        """Read the answers kept so far; raises `UserError` if the folder can't be written, or its file can't be
        read."""
        self.folder = root / f"{name}-{digest(identity)}"
        self.path = self.folder / self.file
        self._known: dict[str, Value] = {}
        self._read = 0  # bytes of whole lines
        if not (self.folder / self.about).exists():
            write_text(self.folder / self.about, json.dumps(dict(identity), indent=1))
        try:
            self.read()
        except Unreadable as error:
            raise UserError(f"{error}; delete it, and its questions will be asked again") from error

    @abstractmethod
    def to_line(self, key: str, value: Value) -> dict[str, Any]:
        """The object of an answer's line."""

    @abstractmethod
    def from_line(self, content: Any) -> tuple[str, Value]:
        """Read a key and an answer from a line's object. Raises `ValueError` for anything else."""

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> Value | None:
        """The answer under a key; None if there is none."""
        return self._known.get(key)

    def read(self) -> None:
        """Take what other processes have added. Raises `Unreadable` if the file can't be read."""
        if not self.path.exists() and not self.path.is_symlink():
            return
        for line in read_lines(self.path, LONGEST_LINE, LARGEST, self._read):
            self._read += len(line) * line.endswith(b"\n")  # the last may be half-written
            with contextlib.suppress(ValueError):
                self._known.setdefault(*self.from_line(unseal(line.decode(), "a line", self.folder.name)))

    def keep(self, key: str, value: Value) -> None:
        """Keep an answer, unless another process has kept one under this key by now. Raises `Unwritable`."""
        line = seal(self.to_line(key, value), context=self.folder.name).encode() + b"\n"
        with writing(self.path), FileLock(self.folder / "lock"), self.path.open("ab+") as file:
            self.read()
            if key in self._known:
                return
            size = file.seek(0, os.SEEK_END)
            half = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"  # as a killed process leaves it
            os.write(file.fileno(), b"\n" * half + line)
            self._known[key] = value
            self._read = size + half + len(line)

"""A journal of trials: Optuna's, with a digest in each of its lines, so that one that the disk changed is noticed."""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import unwritable
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.provenance import without_passwords
from menagerie.envs.core.reading import Unreadable, open_file, parse_json
from menagerie.envs.core.records import KEY, MARK, text_digest

JOURNAL = b'{"op_code"'  # how Optuna's journals begin


def check_journal(path: Path) -> None:
    """Raise for a path at which there can be no journal, or is another file: whose last line would be cut off."""
    if (shown := without_passwords(str(path))) != str(path) and not path.exists():
        raise UserError(
            f"--storage {shown} is no file: a database needs a URL with ://, such as postgresql://me@host/base"
        )
    if not path.parent.is_dir():
        raise UserError(f"--storage {path}: there is no folder {path.parent}; a database needs a URL with ://")
    if not path.exists() and not path.is_symlink():
        return
    try:
        with open_file(path) as file:
            start = file.read(1 << 12).lstrip()[: len(JOURNAL)]
    except Unreadable as error:
        raise UserError(f"--storage: {error}; name a journal, a new file, or a database by a URL with ://") from error
    if not JOURNAL.startswith(start):
        raise UserError(f"--storage {path} is not a journal of Optuna; name one, a new file, or a database by its URL")


def open_journal(path: Path) -> JournalStorage:
    """The journal at `path`, made where there is none."""
    check_journal(path)
    try:
        journal = Journal(path, JournalLock(path, locks_of(path) / "journal"))
        return JournalStorage(journal)
    except UserError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:  # Optuna's, of what a line says
        raise UserError(f"{journal} is not a journal of Optuna ({reason(error)}); {journal.way_out()}") from error


def locks_of(file: Path) -> Path:
    """The folder of the locks beside a file of trials."""
    folder = file.with_name(file.name + ".locks")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    return folder


class JournalLock:
    """Keeps writers of a journal apart by a lock that dies with its holder.

    Optuna's own are files that a killed process leaves behind, and the others then wait 30 seconds.
    """

    def __init__(self, journal: Path, lock: Path) -> None:
        self.journal, self.lock = journal, FileLock(lock)

    def acquire(self) -> bool:
        """Wait for the lock; then cut off what a writer that died left of its last line."""
        self.lock.acquire()
        with self.journal.open("rb+") as file:
            if file.seek(0, 2) and (file.seek(-1, 2), file.read(1))[1] != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        self.lock.release()


class Journal(BaseJournalBackend):
    """A file of JSON lines, as Optuna's own. Lines without a digest, as optuna-dashboard adds them, are read.

    Blank lines, which editors and `cat` leave, are passed over; `line` is the number of the one that was read last.
    """

    def __init__(self, path: Path, lock: JournalLock) -> None:
        self.path, self.lock, self.line = path, lock, 0
        self.places = {0: (0, 0)}  # of a log, by its number: the byte at which it may begin, and the lines before that
        try:
            path.touch()
        except OSError as error:
            raise unwritable(path, error) from error

    def __str__(self) -> str:
        return f"{self.path} line {self.line}"

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Add lines, in one write."""
        lines = [json.dumps(log | {KEY: line_digest(log)}, separators=(",", ":")) + "\n" for log in logs]
        self.lock.acquire()
        try:
            with self.path.open("ab") as file:
                file.write("".join(lines).encode())
                file.flush()
                os.fsync(file.fileno())
        finally:
            self.lock.release()

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """Read the lines from a number on; raises `Unreadable` for a line that was changed since it was written."""
        number = log_number_from if log_number_from in self.places else 0
        start, self.line = self.places[number]
        with self.path.open("rb") as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):  # somebody is writing it, or died: then the next writer cuts it off
                    return
                start, self.line = start + len(line), self.line + 1
                if not line.strip():
                    continue
                number += 1
                self.places[number] = (start, self.line)
                if number > log_number_from:
                    yield self.said(line)

    def said(self, line: bytes) -> dict[str, Any]:
        """The log in a line, without its digest."""
        try:
            log = parse_json(line, self)
            if not isinstance(log, dict) or "op_code" not in log:
                raise Unreadable(f"{self} is no line of a journal")
            digest = log.pop(KEY, None)
            if (digest is None and is_spoilt(log)) or (digest is not None and digest != line_digest(log)):
                raise Unreadable(f"{self} was changed since it was written")
        except Unreadable as error:
            raise Unreadable(f"{error}; {self.way_out()}") from error
        return log

    def way_out(self) -> str:
        """Say how to go on after the line that was read last.

        What follows it can't be kept: trials are numbered by the lines that make them.
        """
        kept = self.line - 1
        return f"to go on, keep only the {kept} lines before it (head -n {kept}): trials that ended later are run again"


def line_digest(log: dict[str, Any]) -> str:
    """The digest of what a line says."""
    return text_digest(json.dumps(log, separators=(",", ":")))


def is_spoilt(log: dict[str, Any]) -> bool:
    """Whether a line has a digest under another key than its own."""
    return any(isinstance(value, str) and value.startswith(MARK) for value in log.values())


def reason(error: BaseException) -> str:
    """The first line of what an error and its causes say, the innermost first."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

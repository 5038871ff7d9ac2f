"""Storages of trials: a journal file, SQLite, or any database that Optuna opens, also on a server.

A journal has Optuna's format, with a digest in each line to detect changes on the disk. No message from here contains a
password.
"""

import contextlib
import json
import os
import time
from collections.abc import Generator, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import BaseJournalBackend

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import unwritable_error
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.reading import Unreadable, open_file, parse_json
from menagerie.envs.core.records import KEY, MARK, text_digest
from menagerie.studies.runs.passwords import error_without_passwords, without_passwords

Place = str | BaseStorage
"""Where trials are stored: a journal file, a URL, or a storage object of Optuna."""
JOURNAL = b'{"op_code"'  # how Optuna's journals begin


def open_storage(place: Place) -> BaseStorage:
    """Open the storage in a journal file or at a URL of SQLAlchemy; create it if there is none."""
    if isinstance(place, BaseStorage):
        return place
    file = storage_file(place)
    return open_once(place, file.stat().st_ino if file and file.exists() else 0)


@lru_cache(maxsize=8)
def open_once(url: str, _file: int) -> BaseStorage:
    """Open a storage once for all searches of a process, and again if its file was replaced (`_file` is its inode)."""
    if "://" not in url:
        return open_journal(Path(url))
    try:
        return connect(url)
    except Exception as error:  # any error of SQLAlchemy, a driver or a server
        raise open_error(url, error) from error


@contextlib.contextmanager
def hold_storage(place: Place) -> Iterator[None]:
    """Lock the storage, if it is a file, inside this context. Errors of the storage are raised as a `UserError`.

    The lock is released when its holder dies; Optuna's own lock files would remain after a killed process.
    """
    file = storage_file(place)
    journal = file if file and "://" not in str(place) else None
    if journal:
        check_journal(journal)
    try:
        with FileLock(locks_of(file) / "commands") if file else contextlib.nullcontext():
            if journal and journal.exists():
                cut_torn(journal)
            yield
    except StorageInternalError as error:
        why = error_without_passwords(innermost_reason(error), str(place))
        shown = without_passwords(str(place))
        raise UserError(f"--storage {shown} failed: {why}; start again: finished trials are kept") from error


def storage_file(place: Place) -> Path | None:
    """Return the file in which trials are stored; None for servers and memory."""
    if isinstance(place, BaseStorage):
        return None
    if "://" not in place:
        return Path(place)
    name = place.partition("://")[2].partition("?")[0].removeprefix("/")
    return Path(name) if place.startswith("sqlite") and name and not name.startswith((":memory:", "file:")) else None


def locks_of(file: Path) -> Path:
    """Return the folder for locks beside a file of trials, after creating it."""
    folder = file.with_name(file.name + ".locks")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable_error(folder, error) from error
    return folder


def connect(url: str, attempts: int = 5) -> RDBStorage:
    """Connect to a database, and create Optuna's tables in it if there are none."""
    from sqlalchemy.exc import IntegrityError, ProgrammingError

    while True:
        try:
            return RDBStorage(url, engine_kwargs={"pool_pre_ping": True})  # reconnects to a restarted server
        except (IntegrityError, ProgrammingError):  # another command was creating the same tables
            attempts -= 1
            if not attempts:
                raise
            time.sleep(1)


def check_storage(url: str) -> None:
    """Raise if `--storage` can't be a storage; doesn't connect to a server."""
    if url and "://" not in url:
        check_journal(Path(url))
    elif url:
        from sqlalchemy import create_engine

        try:
            create_engine(url).dispose()
        except Exception as error:  # any error of SQLAlchemy or a driver
            raise open_error(url, error) from error


def open_error(url: str, error: Exception) -> UserError:
    """Return the error for a storage that can't be opened, without its password."""
    why = error_without_passwords(innermost_reason(error), url)
    return UserError(f"--storage {without_passwords(url)} can't be opened: {why}; docs/studies.md shows what it may be")


def innermost_reason(error: BaseException) -> str:
    """Return the first line of an error's innermost cause, or the cause's class if it has no message."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def check_journal(path: Path) -> None:
    """Raise for a path where there can't be a journal, and for a file that isn't one, whose last line must not be cut
    off."""
    if (shown := without_passwords(str(path))) != str(path) and not path.exists():
        raise UserError(
            f"--storage {shown} is not a file; write a database as a URL with ://, such as postgresql://me@host/base"
        )
    if not path.parent.is_dir():
        raise UserError(f"--storage {path}: there is no folder {path.parent}; write a database as a URL with ://")
    if not path.exists() and not path.is_symlink():
        return
    try:
        with open_file(path) as file:
            start = file.read(1 << 12).lstrip()[: len(JOURNAL)]
    except Unreadable as error:
        raise UserError(f"--storage: {error}; name a journal, a new file, or a database by a URL with ://") from error
    if not JOURNAL.startswith(start):
        raise UserError(f"--storage {path} is not a journal of Optuna; name one, a new file, or a database by its URL")


def cut_torn(path: Path) -> None:
    """Cut off the incomplete last line of a writer that died."""
    with path.open("rb+") as file:
        if file.seek(0, 2) and (file.seek(-1, 2), file.read(1))[1] != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)


def open_journal(path: Path) -> JournalStorage:
    """Open the journal at `path`; create it if there is none."""
    check_journal(path)
    try:
        path.touch()
    except OSError as error:
        raise unwritable_error(path, error) from error
    journal = Journal(path)
    try:
        return JournalStorage(journal)
    except UserError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:  # raised by Optuna for a line
        raise UserError(
            f"{journal} is not a journal of Optuna ({innermost_reason(error)}); {journal.way_out()}"
        ) from error


class Journal(BaseJournalBackend):
    """A file of JSON lines in the format of Optuna's own journal. Lines without a digest, which optuna-dashboard
    writes, are accepted; blank lines are skipped. `line` is the number of the line that was read last."""

    def __init__(self, path: Path) -> None:
        self.path, self.line = path, 0
        self.read = (0, 0, 0)  # logs, bytes and lines so far

    def __str__(self) -> str:
        return f"{self.path} line {self.line}"

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append lines, in one write; `hold_storage` excludes other writers."""
        lines = [json.dumps(log | {KEY: line_digest(log)}, separators=(",", ":")) + "\n" for log in logs]
        with self.path.open("ab") as file:
            file.write("".join(lines).encode())
            file.flush()
            os.fsync(file.fileno())

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """Yield the logs from number `log_number_from` on; raises `Unreadable` for a line that was changed since it was
        written."""
        number, start, self.line = self.read if self.read[0] <= log_number_from else (0, 0, 0)
        with self.path.open("rb") as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):  # being written, or incomplete: the next command cuts it off
                    return
                start, self.line = start + len(line), self.line + 1
                if not line.strip():
                    continue
                number += 1
                if number > log_number_from:
                    yield self.parse(line)
                self.read = number, start, self.line

    def parse(self, line: bytes) -> dict[str, Any]:
        """Return the log in a line, without its digest."""
        try:
            log = parse_json(line, self)
            if not isinstance(log, dict) or "op_code" not in log:
                raise Unreadable(f"{self} is not a line of a journal")
            digest = log.pop(KEY, None)
            spoilt = any(isinstance(value, str) and value.startswith(MARK) for value in log.values())
            if spoilt if digest is None else digest != line_digest(log):  # the digest may be under a changed key
                raise Unreadable(f"{self} was changed since it was written")
        except Unreadable as error:
            raise Unreadable(f"{error}; {self.way_out()}") from error
        return log

    def way_out(self) -> str:
        """Explain how to continue if the line that was read last is damaged. The lines after it can't be kept, because
        trials are numbered by their lines."""
        kept = self.line - 1
        return f"to go on, keep only the {kept} lines before it (head -n {kept}): trials that ended later are run again"


def line_digest(log: dict[str, Any]) -> str:
    """Return the digest of a line's content."""
    return text_digest(json.dumps(log, separators=(",", ":")))

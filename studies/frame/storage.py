"""Opens what trials are kept in: a journal file, SQLite, or any database that Optuna opens, on a server too.

Nothing here says a password.
"""

import contextlib
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, RDBStorage

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.provenance import error_without_passwords, without_passwords
from menagerie.studies.frame.journal import check_journal, locks_of, open_journal, reason

Place = str | BaseStorage
"""Where trials are kept: a journal file, an URL, or a storage of Optuna's."""


def opened(place: Place) -> BaseStorage:
    """The storage in a journal file or at a URL that SQLAlchemy knows, made where there is none."""
    return place if isinstance(place, BaseStorage) else open_once(place, identity_of_file(place))


@contextlib.contextmanager
def alone(place: Place) -> Iterator[None]:
    """Keep other commands from asking and telling meanwhile, where the storage is a file; what a server says is one
    clear line."""
    file = file_of(place)
    if file and "://" not in str(place):
        check_journal(file)
    try:
        with FileLock(locks_of(file) / "commands") if file else contextlib.nullcontext():
            yield
    except StorageInternalError as error:
        why = error_without_passwords(reason(error), str(place))
        shown = without_passwords(str(place))
        raise UserError(f"--storage {shown} failed: {why}; start again, what ended is kept") from error


def file_of(place: Place) -> Path | None:
    """The file in which trials are kept on this machine, or on a disk that it shares; None of servers and memory."""
    if isinstance(place, BaseStorage):
        return None
    if "://" not in place:
        return Path(place)
    name = place.partition("://")[2].partition("?")[0].removeprefix("/")
    return Path(name) if place.startswith("sqlite") and name and not name.startswith((":memory:", "file:")) else None


def identity_of_file(place: str) -> int:
    """What tells a file of trials from another one that took its place."""
    file = file_of(place)
    return file.stat().st_ino if file and file.exists() else 0


@lru_cache(maxsize=8)
def open_once(url: str, _file: int) -> BaseStorage:
    """Open a storage once for all searches of a process."""
    if "://" not in url:
        return open_journal(Path(url))
    try:
        return connect(url)
    except Exception as error:  # whatever SQLAlchemy, a driver or a server says
        raise unopened(url, error) from error


def connect(url: str, attempts: int = 5) -> RDBStorage:
    """Connect to a database and make Optuna's tables where there are none."""
    from sqlalchemy.exc import IntegrityError, ProgrammingError

    while True:
        try:
            return RDBStorage(url, engine_kwargs={"pool_pre_ping": True})  # a server that was restarted is found again
        except (IntegrityError, ProgrammingError):  # another command was making the same tables
            attempts -= 1
            if not attempts:
                raise
            time.sleep(1)


def check_storage(url: str) -> None:
    """Raise for a `--storage` that can't be one, before anything is made; nothing is connected to."""
    if url and "://" not in url:
        check_journal(Path(url))
    elif url:
        check_url(url)


def check_url(url: str) -> None:
    """Raise for a URL whose kind of database or driver isn't known here; connects to nothing."""
    from sqlalchemy import create_engine

    try:
        create_engine(url).dispose()
    except Exception as error:  # whatever SQLAlchemy or a driver says
        raise unopened(url, error) from error


def unopened(url: str, error: Exception) -> UserError:
    """A storage that can't be opened, without its password."""
    why = error_without_passwords(reason(error), url)
    return UserError(f"--storage {without_passwords(url)} can't be opened: {why}; docs/studies.md shows what it may be")

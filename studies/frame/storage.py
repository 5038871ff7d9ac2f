"""Storages of trials, Optuna's own: a journal file, SQLite, or any database that it opens, also on a server. No message
from here contains a password."""

import contextlib
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Unreadable, open_file
from menagerie.studies.runs.folder import error_without_passwords, without_passwords

Place = str | BaseStorage
"""Where trials are stored: a journal file, a URL of SQLAlchemy, or a storage object of Optuna."""
JOURNAL = b'{"op_code"'  # how Optuna's journals begin
GRACE = 10  # seconds after which the lock of a command that was killed while it wrote is taken away
BUSY = 60  # seconds that SQLite waits for other commands


@contextlib.contextmanager
def opened(place: Place) -> Iterator[BaseStorage]:
    """Yield a storage, which is created if it isn't there. What goes wrong with it inside this context, whatever its
    driver or its server raises, is a `UserError`."""
    what = "opened"
    try:
        storage = place if isinstance(place, BaseStorage) else open_once(place)
        if isinstance(place, str) and "://" not in place:
            cut_torn(Path(place))
        what = "used"
        yield storage
    except UserError:
        raise
    except Exception as error:
        raise storage_error(str(place), error, what) from error


@lru_cache(maxsize=8)
def open_once(place: str) -> BaseStorage:
    """Open a storage once for all searches of a process."""
    if "://" in place:
        return connect(place)
    check_journal(Path(place))
    cut_torn(Path(place))
    return JournalStorage(JournalFileBackend(place, journal_lock(place)))


def journal_lock(place: str) -> JournalFileOpenLock:
    return JournalFileOpenLock(place, grace_period=GRACE)


def connect(url: str) -> RDBStorage:
    """Connect to a database, and create Optuna's tables in it if there are none. Tries again, because another command
    may be creating the same tables."""
    from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

    sqlite = {"connect_args": {"timeout": BUSY}} if url.startswith("sqlite") else {}
    for _ in range(4):
        with contextlib.suppress(IntegrityError, OperationalError, ProgrammingError):
            return RDBStorage(url, engine_kwargs={"pool_pre_ping": True, **sqlite})  # reconnects to a restarted server
        time.sleep(0.5)
    return RDBStorage(url, engine_kwargs={"pool_pre_ping": True, **sqlite})


def cut_torn(path: Path) -> None:
    """Cut off the incomplete last line that a killed writer or a full disk left: Optuna would append to it."""
    if not path.exists() or path.read_bytes()[-1:] in (b"", b"\n"):
        return
    lock = journal_lock(str(path))
    lock.acquire()  # a line that is still being written is complete by then
    try:
        with path.open("rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)
    finally:
        lock.release()


def check_storage(place: str) -> None:
    """Raise if `--storage` can't be a storage; doesn't connect to a server."""
    if place and "://" not in place:
        check_journal(Path(place))
    elif place:
        from sqlalchemy import create_engine

        try:
            create_engine(place).dispose()
        except Exception as error:  # any error of SQLAlchemy or a driver
            raise storage_error(place, error) from error


def check_journal(path: Path) -> None:
    """Raise for a path where there can't be a journal, and for a file that isn't one, which must not be written to."""
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


def storage_error(place: str, error: BaseException, what: str = "opened") -> UserError:
    """Return the error for a storage that can't be opened or used, with the first line of its innermost cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    why = (str(error).strip().splitlines() or [""])[0]
    why = why if " " in why else f"{type(error).__name__} {why}".strip()
    return UserError(
        f"--storage {without_passwords(place)} can't be {what}: {error_without_passwords(why, place)}; "
        "docs/studies.md shows what it may be; finished runs are kept"
    )

"""Opens what trials are kept in: a journal file or a database, for any number of workers on any machine."""

import time
from pathlib import Path

from optuna.storages import BaseStorage, JournalStorage, RDBStorage, get_storage

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.provenance import error_without_passwords, without_passwords
from menagerie.envs.core.reading import Unreadable, open_file
from menagerie.studies.trials.journal import Journal
from menagerie.studies.trials.leases import FileLeases, Heartbeats, JournalLock, Leases

# A worker of a database writes a heartbeat each so many seconds...
BEAT_SECONDS = 20
# ... and is taken for dead after so many without one.
GRACE = 3
JOURNAL = b'{"op_code"'  # how Optuna's journals begin


def open_storage(url: str, beat_seconds: int = BEAT_SECONDS) -> tuple[BaseStorage, Leases]:
    """The storage at a URL that SQLAlchemy knows, or in a journal file, and what says whose workers live."""
    if "://" not in url:
        return open_journal(Path(url))
    try:
        storage = get_storage(connect(url, beat_seconds))
    except Exception as error:  # whatever SQLAlchemy, a driver or a server says
        raise unopened(url, error) from error
    return storage, Heartbeats(storage, beat_seconds)


def connect(url: str, beat_seconds: int, attempts: int = 5) -> RDBStorage:
    """Connect to a database and make Optuna's tables where there are none."""
    from sqlalchemy.exc import IntegrityError, ProgrammingError

    while True:
        try:
            return RDBStorage(
                url,
                engine_kwargs={"pool_pre_ping": True},  # a server that was restarted is found again
                heartbeat_interval=beat_seconds,
                grace_period=GRACE * beat_seconds,
            )
        except (IntegrityError, ProgrammingError):  # another worker was making the same tables
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


def open_journal(path: Path) -> tuple[JournalStorage, FileLeases]:
    """The journal at `path`, made where there is none."""
    check_journal(path)
    locks = path.with_name(path.name + ".locks")
    locks.mkdir(exist_ok=True)
    journal = Journal(path, JournalLock(path, locks / "journal"))
    try:
        storage = JournalStorage(journal)
    except UserError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:  # Optuna's, of what a line says
        raise UserError(f"{journal} is not a journal of Optuna ({reason(error)}); {journal.way_out()}") from error
    return storage, FileLeases(storage, locks)


def reason(error: BaseException) -> str:
    """The first line of what an error and its causes say, the innermost first."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

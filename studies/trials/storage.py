"""Opens what trials are kept in: a journal file or a database, for any number of workers on any machine."""

import time
from pathlib import Path

from optuna.storages import BaseStorage, JournalStorage, RDBStorage, get_storage

from envs.common.errors import UserError
from envs.common.reading import Unreadable, check_regular
from studies.trials.journal import Journal
from studies.trials.leases import FileLeases, Heartbeats, JournalLock, Leases

# A worker of a database writes a heartbeat each so many seconds...
BEAT_SECONDS = 20
# ... and is taken for dead after so many without one.
GRACE = 3


def open_storage(url: str, beat_seconds: int = BEAT_SECONDS) -> tuple[BaseStorage, Leases]:
    """The storage at a URL that SQLAlchemy knows, or in a journal file, and what says whose workers live."""
    if "://" not in url:
        return open_journal(Path(url))
    try:
        storage = get_storage(connect(url, beat_seconds))
    except Exception as error:  # whatever SQLAlchemy, a driver or a server says
        raise UserError(f"--storage {hidden(url)} can't be opened: {reason(error)}") from error
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


def open_journal(path: Path) -> tuple[JournalStorage, FileLeases]:
    """The journal at `path`, made where there is none."""
    if not path.parent.is_dir():
        raise UserError(f"--storage {path}: there is no folder {path.parent}; a database needs a URL with ://")
    try:
        if path.exists() or path.is_symlink():
            check_regular(path)
    except Unreadable as error:
        raise UserError(f"--storage: {error}; give the place of a journal, or of a new one") from error
    locks = path.with_name(path.name + ".locks")
    locks.mkdir(exist_ok=True)
    try:
        storage = JournalStorage(Journal(str(path), JournalLock(path, locks / "journal")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"--storage {path} is not a journal of Optuna ({reason(error)})") from error
    return storage, FileLeases(storage, locks)


def hidden(url: str) -> str:
    """A URL without its password."""
    head, separator, tail = url.rpartition("@")
    return f"{head.rpartition(':')[0]}:***@{tail}" if separator and head.count(":") > 1 else url


def reason(error: BaseException) -> str:
    """The first line of what an error and its causes say, the innermost first."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

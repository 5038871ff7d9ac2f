"""Output files that are written whole or not at all, the clean-up of temporary files that killed processes left, and
numba's cache folder."""

import atexit
import contextlib
import csv
import errno
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, count
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.machine import is_running, remedy, system_name

# Temporary files end in `.SYSTEM-PROCESS.tmp.SUFFIX`; temporary folders begin with this and `-SYSTEM-PROCESS-`.
SCRATCH = "menagerie"
# Errors of a write that concern the disk; their exceptions may name no file.
DISK_ERRORS = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS}
NUMBA_CACHE = "NUMBA_CACHE_DIR"  # environment variable: the folder for numba's compiled code
TEMPORARY = re.compile(r"\..+\.(?P<system>[^.]+)-(?P<process>\d+)\.tmp(\.\w+)?")


class Unwritable(UserError, OSError):
    """Raised if a file can't be written or locked, for example because the disk is full."""

    def __init__(self, message: str, number: int = 0) -> None:
        super().__init__(message)
        self.errno = number


def unwritable_error(path: Path, error: OSError) -> Unwritable:
    """Make the error for a `path` that can't be written; it says what to do."""
    number = error.errno or 0
    what = f"{path} can't be written ({error.strerror or error}){remedy(number)}"
    return Unwritable(f"{what}; what was finished is kept", number)


@contextlib.contextmanager
def writing(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Turn system errors in writing `path`, perhaps under a `temporary` name, into an `Unwritable` that names `path`.

    An error that names no file counts as an error of the write if it is one of `DISK_ERRORS`. An error that names a
    file counts if that is the file being written, or a folder above it.
    """
    try:
        yield
    except Unwritable:
        raise
    except OSError as error:
        places = (temporary or path, *path.parents)
        ours = error.errno in DISK_ERRORS if error.filename is None else Path(str(error.filename)) in places
        if ours:
            raise unwritable_error(path, error) from error
        raise


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success flush it to disk and rename it. Raises `Unwritable`.

    The temporary name keeps `path`'s suffix, because some writers append their own. An empty file of that name is made
    first, so that it is never a link that somebody planted; the final file gets the permissions of that empty file,
    even if the writer replaced it. A killed process leaves at most a file whose name starts with a dot, and the next
    process on this machine that writes into the folder deletes it.
    """
    temporary = path.with_name(f".{path.stem}.{system_name()}-{os.getpid()}.tmp{path.suffix}")
    try:
        with writing(path, temporary):
            path.parent.mkdir(parents=True, exist_ok=True)
            clear_once(path.parent.absolute())
            temporary.unlink(missing_ok=True)
            temporary.touch(exist_ok=False)
            mode = temporary.stat().st_mode
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            if temporary.stat().st_mode != mode:
                temporary.chmod(stat.S_IMODE(mode))
            temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):  # also if the folder couldn't be made
            temporary.unlink(missing_ok=True)


def reserve(path: Path, start: int, size: int) -> None:
    """Reserve disk room for `size` bytes from byte `start` of a file; raises `OSError` if there is no room."""
    with path.open("rb+") as file:
        os.posix_fallocate(file.fileno(), start, size)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file, whole or not at all."""
    with whole_file(target) as temporary:
        shutil.copyfile(source, temporary)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path`, whole or not at all; what UTF-8 can't encode, such as odd bytes of a path, is escaped."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table to `path`, whole or not at all; None is an empty cell."""
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows((header, *rows))


def check_option_folder(option: str, folder: Path | None) -> None:
    """Raise if an option's folder can't be made because it, or a folder above it, is a file."""
    if folder is None:
        return
    there = next((place for place in (folder, *folder.absolute().parents) if place.exists()), folder)
    if not there.is_dir():
        raise UserError(f"{option} {folder}: {there} is no folder; choose another {option}")


@contextlib.contextmanager
def scratch_folder(where: Path | None = None) -> Iterator[Path]:
    """Yield a new temporary folder, in `where` or the system's temporary folder, and delete it at the end.

    A folder that a killed process left is deleted when the next one is made there.
    """
    parent = Path(where or tempfile.gettempdir())
    for folder in parent.glob(f"{SCRATCH}-{system_name()}-*"):
        process = folder.name.split("-")[2]
        if process.isdecimal() and not is_running(int(process)):
            shutil.rmtree(folder, ignore_errors=True)
    owner = os.getpid()
    folder = tempfile.mkdtemp(dir=where, prefix=f"{SCRATCH}-{system_name()}-{owner}-")
    try:
        yield Path(folder)
    finally:
        if os.getpid() == owner:  # in a fork, multiprocessing forgets finalizers: don't delete the parent's folder
            shutil.rmtree(folder, ignore_errors=True)


def clear_leftovers(folder: Path, below: bool = False, alone: bool = False) -> None:
    """Delete the temporary files that killed processes left in a folder, and `below` it.

    Files of running processes are kept. Files of other machines are kept too, since their processes can't be seen from
    here, unless `alone` says that this process holds a lock that all writers take.
    """
    for path in folder.rglob(".*.tmp*") if below else folder.glob(".*.tmp*"):
        name = TEMPORARY.fullmatch(path.name)
        if name and path.is_file():
            ended = not is_running(int(name["process"])) if name["system"] == system_name() else alone
            if ended:
                path.unlink(missing_ok=True)


@cache
def clear_once(folder: Path) -> None:
    """Delete the leftovers in a folder the first time that this process writes there. It isn't done again, because
    listing a large folder takes a long time."""
    with contextlib.suppress(OSError):  # somebody else's file
        clear_leftovers(folder)


def set_numba_cache(package: Path) -> None:
    """Give numba a new folder for compiled code if `NUMBA_CACHE` names none and neither `package` nor the user's cache
    can be written; child processes inherit it. Only this user can write to it, because its files are executed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "numba"
    if os.environ.get(NUMBA_CACHE) or is_writable(package) or is_writable(cache):
        return
    note = f"note: neither {package} nor {cache} can be written, so every command compiles anew; set {NUMBA_CACHE}"
    kept = contextlib.ExitStack()
    with contextlib.suppress(OSError):  # numba itself will complain if it is used
        os.environ[NUMBA_CACHE] = str(kept.enter_context(scratch_folder()))
        atexit.register(kept.close)
        print(f"{note} to a folder of yours", file=sys.stderr)


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or the folder itself if it doesn't exist."""
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.exists(place))
    return os.path.isdir(there) and os.access(there, os.W_OK)


def file_name(text: str) -> str:
    """Make a text fit for a file name: "-" replaces all but letters, digits, "_" and ".". Names of tests of hold-out
    rules have such other characters."""
    return re.sub(r"[^\w.-]+", "-", text)


def file_names(labels: Iterable[str]) -> dict[str, str]:
    """For each label a different file name of letters, digits, ".", "-" and "_", also where capitals don't count."""
    found: dict[str, str] = {}
    taken = {""}
    for label in dict.fromkeys(labels):
        name = file_name(label).strip("-")
        ways = chain([name], (f"{name}-{number}" for number in count(1)))
        found[label] = next(way for way in ways if way.casefold() not in taken)
        taken.add(found[label].casefold())
    return found

"""Output files that are written whole or not at all, what killed processes left of theirs, and where numba writes."""

import atexit
import contextlib
import csv
import errno
import os
import re
import resource
import shutil
import stat
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.machine import is_running, system_name

# Files end in `.SYSTEM-PROCESS.tmp.SUFFIX`, folders begin with this and `-SYSTEM-PROCESS-`.
SCRATCH = "menagerie"
# Errors of a write that tell of the disk, and those of which more room is the way out.
NO_ROOM = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
UNKNOWN = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ENODEV}  # a disk that can't keep room for a file
BLOCK = 1 << 20
OF_THE_DISK = NO_ROOM | {errno.EROFS}
OF_A_WRITE = OF_THE_DISK | {errno.EIO}  # which a disk that is read from says too
NUMBA_CACHE = "NUMBA_CACHE_DIR"  # in the environment: the folder of what numba compiles
TEMPORARY = re.compile(r"\..+\.(?P<system>[^.]+)-(?P<process>\d+)\.tmp(\.\w+)?")


class Unwritable(UserError, OSError):
    """Why a file can't be written: the disk is full, or may not be written to."""

    def __init__(self, message: str, number: int = 0) -> None:
        super().__init__(message)
        self.errno = number


def unwritable(path: Path, error: OSError) -> Unwritable:
    """The message for a `path` that can't be written, with a way out."""
    way = "choose another place"
    if error.errno == errno.EFBIG:
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        way = "raise the limit on the size of files, 'ulimit -f'" + f", from {most} bytes" * (most > 0)
    elif error.errno in NO_ROOM:
        way = f"make room there, {free_bytes(path)} bytes are free"
    return Unwritable(
        f"{path} can't be written ({error.strerror or error}); {way}; what was finished is kept", error.errno or 0
    )


def free_bytes(path: Path) -> int:
    """Free bytes on the disk that is to hold a new file."""
    return shutil.disk_usage(next(place for place in path.absolute().parents if place.is_dir())).free


@contextlib.contextmanager
def writing(path: Path, temporary: Path | None = None, errors: Collection[int] = OF_A_WRITE) -> Iterator[None]:
    """Turn what the system says of writing `path`, perhaps under a `temporary` name, into an `Unwritable` with it.

    An error of a write has no path of its own: these `errors` are taken for one. One with a path is one of a write
    where that is what is written, or a folder of it.
    """
    try:
        yield
    except Unwritable:
        raise
    except OSError as error:
        places = (temporary or path, *path.parents)
        ours = error.errno in errors if error.filename is None else Path(str(error.filename)) in places
        if ours:
            raise unwritable(path, error) from error
        raise


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success flush it to disk and rename it. Raises `Unwritable`.

    The temporary name keeps `path`'s suffix, because some writers append their own. It is that of an empty file that
    was made for it, and never a link that somebody planted; writers that put another file in its place don't decide
    its permissions. A killed process leaves at most a file whose name starts with a dot; the next one that writes into
    the folder deletes it.
    """
    temporary = path.with_name(f".{path.stem}.{system_name()}-{os.getpid()}.tmp{path.suffix}")
    try:
        with writing(path, temporary, OF_THE_DISK):  # who writes may read too
            path.parent.mkdir(parents=True, exist_ok=True)
            clear_once(path.parent.absolute())
            mode = make_empty(temporary)
            yield temporary
            with writing(path, temporary):
                put_in_place(temporary, path, mode)
    finally:
        with contextlib.suppress(OSError):  # also where its folder couldn't be made
            temporary.unlink(missing_ok=True)


def put_in_place(temporary: Path, path: Path, mode: int) -> None:
    """Flush a file to disk, give it its permissions and its name."""
    with temporary.open("rb+") as handle:
        if stat.S_IMODE(os.fstat(handle.fileno()).st_mode) != mode:
            os.fchmod(handle.fileno(), mode)
        os.fsync(handle.fileno())
    temporary.replace(path)


def make_empty(path: Path) -> int:
    """Make a new empty file in place of whatever has its name, following no link; returns its permissions."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        return stat.S_IMODE(os.fstat(handle).st_mode)
    finally:
        os.close(handle)


def reserve(path: Path, start: int, size: int) -> None:
    """Have the disk keep room for `size` bytes from byte `start` of a file; raises `OSError` where there is none."""
    with path.open("rb+") as file:
        try:
            os.posix_fallocate(file.fileno(), start, size)
        except OSError as error:
            if error.errno not in UNKNOWN:
                raise OSError(error.errno, f"{os.strerror(error.errno)} for {size} bytes more") from error
            file.seek(start)
            for done in range(0, size, BLOCK):
                file.write(bytes(min(BLOCK, size - done)))


def copy_file(source: Path, target: Path) -> None:
    """Copy a file, whole or not at all."""
    with whole_file(target) as temporary:
        shutil.copyfile(source, temporary)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path`, whole or not at all; bytes of a path that are no UTF-8 as \\udcff."""
    with whole_file(path) as temporary, writing(path, temporary):
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table to `path`, whole or not at all; None is an empty cell."""
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows((header, *rows))


def check_place(option: str, folder: Path | None) -> None:
    """Raise where an option's folder can't be made, because it or one above it is a file."""
    if folder is None:
        return
    there = next((place for place in (folder, *folder.absolute().parents) if place.exists()), folder)
    if not there.is_dir():
        raise UserError(f"{option} {folder}: {there} is no folder; choose another {option}")


@contextlib.contextmanager
def scratch_folder(where: Path | None = None) -> Iterator[Path]:
    """Yield a new folder in `where` or the system's place for such, deleted at the end; one of a killed process goes
    with the next that is made there."""
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
        if os.getpid() == owner:  # multiprocessing forgets finalizers in a fork, which would end this there
            shutil.rmtree(folder, ignore_errors=True)


def is_temporary(path: Path) -> bool:
    """Whether a path is a temporary one of `whole_file`, of any process."""
    return TEMPORARY.fullmatch(path.name) is not None


def clear_leftovers(folder: Path, below: bool = False, alone: bool = False) -> None:
    """Delete the temporary files that killed processes left in a folder, and `below` it.

    Those of processes that run are kept, and those of other systems, of which nobody knows here; where this process
    is `alone`, by a lock that all writers take, they go too.
    """
    for path in folder.rglob(".*.tmp*") if below else folder.glob(".*.tmp*"):
        if path.is_file() and is_left(path, alone):
            path.unlink(missing_ok=True)


@cache
def clear_once(folder: Path) -> None:
    """Clear a folder when this process first writes there: it may hold very many files."""
    with contextlib.suppress(OSError):  # somebody else's
        clear_leftovers(folder)


def is_left(path: Path, alone: bool) -> bool:
    """Whether the process that wrote a temporary file has ended."""
    name = TEMPORARY.fullmatch(path.name)
    if name is None:
        return False
    return not is_running(int(name["process"])) if name["system"] == system_name() else alone


def place_compiled(package: Path) -> None:
    """Choose a cache folder for numba if it can write to none of its own; processes started from here inherit it.

    The folder is new each time and only this user's, because its files are code.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "numba"
    if os.environ.get(NUMBA_CACHE) or is_writable(package) or is_writable(cache):
        return
    kept = contextlib.ExitStack()
    try:
        os.environ[NUMBA_CACHE] = str(kept.enter_context(scratch_folder()))
    except OSError:  # numba itself will complain, if it is used
        return
    atexit.register(kept.close)
    print(
        f"note: neither {package} nor {cache} can be written, so that every command compiles anew; set {NUMBA_CACHE} "
        "to a folder of yours",
        file=sys.stderr,
    )


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or the folder itself if it isn't there."""
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.exists(place))
    return os.path.isdir(there) and os.access(there, os.W_OK)

"""This machine: what its errors say in one line, with the way out, and which processes run."""

import errno
import hashlib
import io
import os
import platform
import shutil
import socket
import traceback
from functools import cache
from pathlib import Path

SHARED = "/dev/shm"  # where Linux keeps locks and memory that processes share
FULL = (
    f"{SHARED}, through which processes share locks and memory, has no room or can't be written; enlarge it (docker "
    "run --shm-size=8g), or start fewer processes: --workers 1, --loaders 0"
)
ENDED = (
    "a process of this command has ended: killed, as the system does when memory is short; what is finished is kept, "
    "the same command goes on from there, and fewer processes (--loaders, --workers) take less memory"
)
LITTLE = 1 << 20  # bytes: less free shared memory than this counts as none
ROOM_ERRORS = {errno.ENOSPC, errno.EROFS, errno.EACCES}
ROOM, PLACE = "make room there", "choose another place, or get permission"
LOCKED = "another program holds a lock on it: run this again when that has ended"
# What to do about an error of the system.
REMEDIES = {
    errno.EMFILE: "let this process open more files ('ulimit -n'), the file is fine",
    errno.ENFILE: "all programs together have as many files open as this machine allows: end some, or raise "
    "'sysctl fs.file-max', the file is fine",
    errno.ENOMEM: "start fewer processes, or lift a limit on memory (ulimit -v)",
    errno.ESTALE: "its file server took it away: mount that disk again, and run this again",
    errno.EIO: "its disk or file server fails: mend that, and run this again",
    errno.ENOLCK: "the file system has no locks left: copy the file to a local disk",
    errno.EFBIG: "raise the limit on the size of files, 'ulimit -f'",
    **dict.fromkeys((errno.EAGAIN, errno.EDEADLK), LOCKED),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), ROOM),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR), PLACE),
}
SHARED_MEMORY_ERRORS = ("dataloader worker", "unable to write to file </torch_", "unable to mmap", "shared memory")
FILES = "too many files are open ({}); " + REMEDIES[errno.EMFILE]
MEMORY = "out of memory ({}); start fewer processes, take smaller batches, or lift a limit (ulimit -v)"
LIBRARY = "a library can't be loaded ({}); lift the limit on memory (ulimit -v), or mend its installation"
# Errors of libraries: types, parts of their messages in small letters, and what to say. Others are faults of code.
LIBRARY_ERRORS = (
    (RuntimeError, ("too many open files", "items of ancdata"), FILES),
    (MemoryError, ("",), MEMORY),
    (RuntimeError, ("allocate memory", "out of memory", "can't start new thread"), MEMORY),
    (RuntimeError, ("dataloader worker (pid",), ENDED),
    (ImportError, ("failed to map segment", "cannot allocate memory", "cannot open shared object file"), LIBRARY),
)


def describe_shortage(error: BaseException) -> str:
    """Say what the machine lacks, if that caused an error, and what to do about it; empty for other errors."""
    text = " ".join(str(error).split())
    small = text.lower()
    shared = isinstance(error, OSError) and error.errno in ROOM_ERRORS and error.filename is None
    shared |= isinstance(error, RuntimeError) and any(part in small for part in SHARED_MEMORY_ERRORS)
    if shared and (free_shared_memory() < LITTLE or not os.access(SHARED, os.W_OK)):
        return FULL
    if isinstance(error, EOFError | ConnectionError):
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        return ENDED if frames and frames[-1].f_globals.get("__name__", "").startswith("multiprocessing.") else ""
    fitting = (
        said for kind, parts, said in LIBRARY_ERRORS if isinstance(error, kind) and any(part in small for part in parts)
    )
    return next(fitting, "").format(text[:200])


def remedy(number: int) -> str:
    """Say what to do about a system error; empty if no remedy is known."""
    return f"; {REMEDIES[number]}" if number in REMEDIES else ""


def describe_system_error(error: OSError) -> str:
    """One line about an error of the system that nobody handled; other `OSError`s as they say it themselves."""
    if not error.errno or not error.strerror or isinstance(error, ConnectionError | socket.gaierror):
        return str(error)
    path = error.filename if error.filename is not None else open_file_in(error)
    place = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else "a file"
    return f"{place} can't be used ({error.strerror}){remedy(error.errno)}; what was finished is kept"


def open_file_in(error: OSError) -> str | None:
    """The name of the file that was open for writing where an error came up, as a full disk's error has no name; None
    if there is none."""
    frames = reversed([frame for frame, _ in traceback.walk_tb(error.__traceback__)])
    files = (file for frame in frames for file in frame.f_locals.values() if isinstance(file, io.IOBase))
    written = (file for file in files if set("wax+") & set(str(getattr(file, "mode", ""))))
    return next((file.name for file in written if isinstance(file.name, str)), None)


def usable_cores() -> int:
    """The number of cores that this process may use; a cluster's task or a container often has fewer than the
    machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_shared_memory() -> float:
    """Free bytes of shared memory (`SHARED`, /dev/shm); infinite on systems without it."""
    try:
        return shutil.disk_usage(SHARED).free
    except OSError:
        return float("inf")


@cache
def system_name() -> str:
    """A name for the scope in which process numbers are unique; two processes in one container of one machine get the
    same name."""
    space = Path("/proc/self/ns/pid")
    names = f"{platform.node()} {os.readlink(space) if space.exists() else ''}"
    return hashlib.sha256(names.encode()).hexdigest()[:8]


def is_running(process: int) -> bool:
    """Whether a process of this number exists; also True for an ended one that its parent hasn't collected yet."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True

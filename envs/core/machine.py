"""This machine: what is missing when a library fails (memory, a system library), and which processes run."""

import contextlib
import errno
import hashlib
import os
import platform
import re
import shutil
import traceback
from functools import cache
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.system_errors import way_out

SHARED = "/dev/shm"  # where Linux keeps locks and memory that processes share
FULL = (
    f"{SHARED}, through which processes share locks and memory, has no room or can't be written; enlarge it (docker "
    "run --shm-size=8g), or start fewer processes: --workers 1, --loaders 0"
)
LOADING_ENDED = (
    "a process that prepares batches has ended: killed, as the system does when memory is short; the same command goes "
    "on from the last saved state, and fewer processes (--loaders, --workers) take less memory"
)
LITTLE = 1 << 20  # bytes: less free shared memory than this counts as none
OF_ROOM = {errno.ENOSPC, errno.EROFS, errno.EACCES}
# Parts of RuntimeError messages of torch.
OF_FILES = ("Too many open files", "items of ancdata")
OF_SHARED = ("DataLoader worker", "unable to write to file </torch_", "unable to mmap", "shared memory")
OF_LOADING = re.compile(r"DataLoader worker \(pid")  # the start of its message if one ended; not if it raised an error
# Parts of ImportError messages when the system can't load a library; other ImportErrors are faults of code.
OF_LOADER = ("failed to map segment", "cannot allocate memory", "cannot open shared object file")
OF_MEMORY = ("can't allocate memory", "out of memory", "can't start new thread", "Cannot allocate memory")


def lacking(error: BaseException) -> str:
    """Say what the machine lacks, if that caused an error, and what to do about it; empty for other errors."""
    text = " ".join(str(error).split())
    if isinstance(error, ImportError) and any(part in text.lower() for part in OF_LOADER):
        return f"a library can't be loaded ({text}); lift the limit on memory (ulimit -v), or mend its installation"
    shared = isinstance(error, OSError) and error.errno in OF_ROOM and error.filename is None
    shared |= isinstance(error, RuntimeError) and any(part in text for part in OF_SHARED)
    if shared and (free_shared() < LITTLE or not os.access(SHARED, os.W_OK)):
        return FULL
    if isinstance(error, RuntimeError) and any(part in text for part in OF_FILES):
        return f"too many files are open ({text:.200}){way_out(errno.EMFILE)}"
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(part in text for part in OF_MEMORY)):
        return f"out of memory ({text:.200}); start fewer processes, take smaller batches, or lift a limit (ulimit -v)"
    gone = isinstance(error, EOFError | ConnectionError)
    if isinstance(error, RuntimeError) and OF_LOADING.match(text):
        return LOADING_ENDED
    if gone and raised_in("multiprocessing.", error):
        if passed("torch.utils.data.", error):
            return LOADING_ENDED
        reason = "the process that workers are forked from has ended: killed, or out of memory"
        return f"{reason}; what is finished is kept, run the command again"
    return ""


def modules_of(error: BaseException) -> list[str]:
    """The names of the modules that an error passed through; it was raised in the last."""
    return [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]


def raised_in(modules: str, error: BaseException) -> bool:
    """Whether an error was raised in a module whose name begins so, or by what such a module called of the system."""
    return bool(names := modules_of(error)) and names[-1].startswith(modules)


def passed(modules: str, error: BaseException) -> bool:
    """Whether an error was raised in, or passed through, a module whose name begins so."""
    return any(name.startswith(modules) for name in modules_of(error))


def usable_cores() -> int:
    """The number of cores that this process may use; a cluster's task or a container often has fewer than the
    machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_shared() -> float:
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


class Process(NamedTuple):
    """A process, identified by its number and the time when it started, because numbers are reused."""

    number: int
    started: str = ""
    """Start time in the system's own units; empty if the system doesn't give it."""

    @classmethod
    def of(cls, number: int) -> "Process":
        """Identify the process that has this number now."""
        return cls(number, started(number))

    @property
    def lives(self) -> bool:
        """Whether the process still runs on this system."""
        return is_running(self.number) and started(self.number) == self.started


def started(number: int) -> str:
    """The start time of a process in the system's own units; empty if it has ended or the system doesn't give it."""
    with contextlib.suppress(OSError, IndexError):
        state, *fields = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]
    return ""

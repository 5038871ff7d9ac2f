"""This machine: what it lacks where a library fails, and which processes run."""

import contextlib
import errno
import hashlib
import os
import platform
import shutil
from functools import cache
from pathlib import Path
from typing import NamedTuple

SHARED = "/dev/shm"  # where Linux keeps locks and memory that processes share
FULL = (
    f"{SHARED}, through which processes share locks and memory, has no room; enlarge it (docker run --shm-size=8g), or "
    "start fewer processes: --workers 1, --loaders 0"
)
LITTLE = 1 << 20  # bytes: less of it is none
# What a RuntimeError of torch says.
OF_SHARED = ("DataLoader worker", "unable to write to file </torch_", "unable to mmap", "shared memory")
# What an ImportError says if the system can't load a library; others are faults of code.
OF_LOADER = ("failed to map segment", "cannot allocate memory", "cannot open shared object file")
OF_MEMORY = ("can't allocate memory", "out of memory", "can't start new thread", "Cannot allocate memory")


def lacking(error: BaseException) -> str:
    """Name what the machine lacks if that caused an error, with the way out; empty for other errors."""
    text = " ".join(str(error).split())
    if isinstance(error, ImportError) and any(part in text.lower() for part in OF_LOADER):
        return f"a library can't be loaded ({text}); lift the limit on memory (ulimit -v), or mend its installation"
    shared = isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None
    shared |= isinstance(error, RuntimeError) and any(part in text for part in OF_SHARED)
    if shared and free_shared() < LITTLE:
        return FULL
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(part in text for part in OF_MEMORY)):
        return f"out of memory ({text:.200}); start fewer processes, take smaller batches, or lift a limit (ulimit -v)"
    return ""


def free_shared() -> float:
    """Bytes that are free in shared memory; infinite where there is no such place."""
    try:
        return shutil.disk_usage(SHARED).free
    except OSError:
        return float("inf")


@cache
def system_name() -> str:
    """A name for where process numbers are unique: the same for two processes in one container of one machine."""
    space = Path("/proc/self/ns/pid")
    names = f"{platform.node()} {os.readlink(space) if space.exists() else ''}"
    return hashlib.sha256(names.encode()).hexdigest()[:8]


def is_running(process: int) -> bool:
    """Whether there is a process with a number; one that has ended counts until its parent has taken note."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


class Process(NamedTuple):
    """A process, told from a later one with the same number by when it was started."""

    number: int
    started: str = ""
    """Empty where the system doesn't say."""

    @classmethod
    def of(cls, number: int) -> "Process":
        """The process that now has a number."""
        return cls(number, started(number))

    @property
    def lives(self) -> bool:
        """Whether the process still runs, on this system."""
        return is_running(self.number) and started(self.number) == self.started


def started(number: int) -> str:
    """When a process was started, in the system's own count; empty where that doesn't say, or for one that ended."""
    with contextlib.suppress(OSError, IndexError):
        state, *fields = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]
    return ""

"""What a machine lacks, in one line: errors that are no fault of the code, where libraries raise them as they like."""

import errno
import shutil

SHARED = "/dev/shm"  # where Linux keeps locks and memory that processes share
FULL = (
    f"{SHARED}, through which processes share locks and memory, has no room; enlarge it (docker run --shm-size=8g), or "
    "start fewer processes: --workers 1, --loaders 0"
)
LITTLE = 1 << 20  # bytes: less of it is none
# In what torch says, as a RuntimeError.
OF_SHARED = ("DataLoader worker", "unable to write to file </torch_", "unable to mmap", "shared memory")
# In what the loader of libraries says: other ImportErrors are faults of code.
OF_LOADER = ("failed to map segment", "cannot allocate memory", "cannot open shared object file")
OF_MEMORY = ("can't allocate memory", "out of memory", "can't start new thread", "Cannot allocate memory")


def lacking(error: BaseException) -> str:
    """What the machine lacks where something raised this, and the way out; empty for any other error."""
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

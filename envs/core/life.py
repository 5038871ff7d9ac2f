"""Which processes of this system live."""

import contextlib
import hashlib
import os
import platform
from functools import cache
from pathlib import Path
from typing import NamedTuple


@cache
def system_name() -> str:
    """The same for two processes exactly where their numbers are of one machine, and of one container on it."""
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
        """Whether it still runs, on this system."""
        return is_running(self.number) and started(self.number) == self.started


def started(number: int) -> str:
    """When a process was started, in the system's own count; empty where that doesn't say, or for one that ended."""
    with contextlib.suppress(OSError, IndexError):
        state, *fields = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]
    return ""

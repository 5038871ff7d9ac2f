"""Processes of this machine, told apart even after their numbers are reused."""

import contextlib
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.machine import is_running


class Process(NamedTuple):
    """A process, identified by its number and the time when it started, because numbers are reused."""

    number: int
    started: str = ""
    """Start time in the system's own units; empty if the system doesn't give it."""

    @classmethod
    def of(cls, number: int) -> "Process":
        """Identify the process that has this number now."""
        return cls(number, start_time(number))

    @property
    def lives(self) -> bool:
        """Whether the process still runs on this system."""
        return is_running(self.number) and start_time(self.number) == self.started


def start_time(number: int) -> str:
    """The start time of a process in the system's own units; empty if it has ended or the system doesn't give it."""
    with contextlib.suppress(OSError, IndexError):
        state, *fields = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]
    return ""

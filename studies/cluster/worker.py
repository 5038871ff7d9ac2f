"""The body of a cluster task, which ends on request and is queued again if it can continue."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from menagerie.envs.core.errors import Stopped
from menagerie.envs.core.machine import is_running
from menagerie.envs.core.processes import WAIT_SECONDS, call_in_worker, end_after

# SIGTERM is sent at preemption, SIGUSR2 before the time limit (as submitit requests).
SIGNALS = (signal.SIGTERM, signal.SIGUSR2)
QUERIES = 5  # queries of a job's state before it counts as ended


@dataclass
class Interruption:
    """A request to end a job: at once or, while `deferred`, at its next `check`."""

    deferred: bool = False
    requested: bool = False

    def request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        if not self.deferred:
            raise Stopped

    def check(self) -> None:
        """Raise `Stopped` if the end was requested."""
        if self.requested:
            raise Stopped

    def release(self) -> None:
        """Let later requests end the job at once; raises `Stopped` if there was a request before."""
        self.deferred = False
        self.check()


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

    def wait(self) -> None:
        """Wait until the process has ended."""
        while self.lives:
            time.sleep(WAIT_SECONDS)


def start_time(number: int) -> str:
    """The start time of a process in the system's own units; empty if it has ended or the system doesn't give it."""
    with contextlib.suppress(OSError, IndexError):
        state, *fields = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]
    return ""


@dataclass(frozen=True)
class Command:
    """The submitting command. Local tasks end with it; Slurm's tasks don't need it."""

    process: Process = field(default_factory=lambda: Process.of(os.getpid()))

    def __reduce__(self) -> tuple[Callable[..., "Command"], tuple[Process]]:
        return restore_command, (self.process,)


def restore_command(process: Process) -> Command:
    """Unpickle the command inside a task. A local task then ends with the command, and ignores Ctrl-C."""
    if is_local():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is blocked, but multiprocessing would unblock it
        end_after(process.wait, gently=True)
    return Command(process)


def is_local() -> bool:
    return os.environ.get("SUBMITIT_EXECUTOR") == "local"


@dataclass(frozen=True)
class Task:
    """The function that submitit runs: it calls a function with an argument and an `Interruption`.

    Called again after a stop, the function must continue where it stopped.
    """

    submitted: Command
    """The submitting command. As fields are unpickled in order, it is before the function, which takes seconds to
    load."""
    function: Callable[[Any, Interruption], None]
    command: tuple[str, ...] = field(default_factory=lambda: tuple(sys.argv))
    """Command line of the user, for the provenance of results."""

    def __call__(self, argument: object) -> None:
        """Run the function. A stopped task is queued again if it may continue."""
        requeue = signal.getsignal(signal.SIGUSR2)  # submitit's handler, which must not interrupt a step
        interruption = Interruption()
        sys.argv[:] = self.command
        try:
            for number in SIGNALS:
                signal.signal(number, interruption.request)
            call_in_worker(self.function, argument, interruption)
        except Stopped:
            for number in SIGNALS:  # Slurm sends more while it ends this process
                signal.signal(number, signal.SIG_IGN)
            if may_go_on():
                requeue(signal.SIGUSR2, None)  # calls `checkpoint`, queues again and exits
            sys.exit("stopped: what was saved is kept")

    def checkpoint(self, argument: object) -> object:
        """Return what submitit queues again: the same task, because its state is in files."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, argument)


def may_go_on() -> bool:
    """Whether to queue the task again: only Slurm's, and not if Slurm ends the job, because then it was cancelled, or
    Slurm requeues it."""
    if is_local():
        return False
    command = ["squeue", "--noheader", "--format=%T", f"--jobs={os.environ['SLURM_JOB_ID']}"]
    for _ in range(QUERIES):  # a busy Slurm may not answer at once
        if state := subprocess.run(command, capture_output=True, text=True).stdout.strip():
            return state == "RUNNING"
        time.sleep(1)
    return False

"""What runs in a task of a cluster: it ends when it is asked to, and queues again if it may go on."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from envs.common.errors import Stopped, UserError

# SIGTERM comes with preemption, SIGUSR2 is what Slurm sends for submitit before the time limit.
SIGNALS = (signal.SIGTERM, signal.SIGUSR2)


@dataclass
class Interruption:
    """Ends a task that is asked to end: at once, or, while `held`, at its next `check`."""

    held: bool = False
    asked: bool = False

    def ask(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        self.asked = True
        if not self.held:
            raise Stopped

    def check(self) -> None:
        """Raise `Stopped` if the task was asked to end."""
        if self.asked:
            raise Stopped

    def release(self) -> None:
        """From now on end at once; raise `Stopped` if it was asked for meanwhile."""
        self.held = False
        self.check()


@dataclass(frozen=True)
class Task:
    """A function as submitit runs it.

    The function is called with an argument and an `Interruption`; called again after it was
    stopped, it goes on where it was.
    """

    function: Callable[[Any, Interruption], None]
    command: tuple[str, ...] = field(default_factory=lambda: tuple(sys.argv))
    """What the user typed, for the provenance of results."""

    def __call__(self, argument: Any) -> None:
        """Run; an error of the user's ends with its one line in the log."""
        requeue = signal.getsignal(signal.SIGUSR2)  # submitit's own, which mustn't come in the middle of a step
        interruption = Interruption()
        sys.argv[:] = self.command
        try:
            for number in SIGNALS:
                signal.signal(number, interruption.ask)
            self.function(argument, interruption)
        except Stopped:
            for number in SIGNALS:  # of Slurm, which now ends this process
                signal.signal(number, signal.SIG_IGN)
            if may_go_on():
                requeue(signal.SIGUSR2, None)  # calls `checkpoint`, queues again and exits
            sys.exit("stopped: what was saved is kept")
        except UserError as error:
            sys.exit(f"error: {error}")

    def checkpoint(self, argument: Any) -> Any:
        """What submitit queues again: the same, because the state is in files."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, argument)


def may_go_on() -> bool:
    """Whether to queue again. A job that Slurm is already ending was cancelled, or Slurm queues it itself."""
    if os.environ.get("SUBMITIT_EXECUTOR") != "slurm":
        return True
    command = ["squeue", "--noheader", "--format=%T", f"--jobs={os.environ['SLURM_JOB_ID']}"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() == "RUNNING"

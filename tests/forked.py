"""Commands in forks of the server of workers that this process has: real processes to kill, without interpreters."""

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.command import as_before, execute, until


class Forked(ForkServerProcess):
    """A command that runs in `folder` as a process of its own; its workers are forks of the same server."""

    def __init__(self, command: list[str], folder: Path) -> None:
        from menagerie.studies.runs.machine import start_server

        super().__init__()
        self.command, self.folder, self.environment = command, folder, dict(os.environ)
        descriptor, self.output = tempfile.mkstemp()
        os.close(descriptor)
        with as_before():
            start_server(1)
            self.start()

    def run(self) -> None:
        """In the fork: what is a worker's becomes a command's."""
        from menagerie.envs.core.processes import _served

        _served.append(__name__)  # a command that has a server starts none
        forkserver._forkserver.ensure_running = lambda: None  # Python starts one, though it knows the socket of ours
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with open(self.output, "w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        sys.stdout = os.fdopen(1, "w", buffering=1)
        sys.stderr = os.fdopen(2, "w", buffering=1)
        os.environ.clear()
        os.environ.update(self.environment)
        sys.exit(execute(self.command, self.folder))

    def poll(self) -> int | None:
        """Its exit status, if it has ended."""
        return self.exitcode

    def communicate(self) -> str:
        """What it printed, errors among it."""
        return Path(self.output).read_text()


def kill_when(command: list[str], folder: Path, reached: Callable[[], bool]) -> None:
    """Start, and kill -9 the command's process alone as soon as `reached()`; its workers find out by themselves."""
    process = Forked(command, folder)
    until(reached, process, often=0.01)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    Path(process.output).unlink()

"""Runs commands in forks of the tests' server of workers: no interpreter has to start, and figures are grey."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing import forkserver, process
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.command import WAIT_SECONDS, as_before, execute, no_figures, until


class Forked(ForkServerProcess):
    """A command that runs in `folder`; its workers are forks of the same server."""

    def __init__(self, command: list[str], folder: Path) -> None:
        from menagerie.studies.runs.machine import start_server

        super().__init__()
        self.command, self.folder, self.environment = command, folder, dict(os.environ)
        self.said = tempfile.mkdtemp()
        with as_before():
            start_server(1)
            self.start()

    def run(self) -> None:
        """In the fork: turn a worker into a command."""
        from menagerie.envs.core.processes import _served

        _served.append(__name__)  # a command that has a server starts none
        forkserver._forkserver.ensure_running = lambda: None  # Python starts one, though it knows the socket of ours
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, name in ((1, "stdout"), (2, "stderr")):
            with open(f"{self.said}/{name}", "w") as file:
                os.dup2(file.fileno(), number)
            setattr(sys, name, os.fdopen(number, "w", buffering=1))
        process.ORIGINAL_DIR = str(self.folder)  # where its workers look for its script
        os.environ.clear()
        os.environ.update(self.environment)
        with no_figures():
            status = execute(self.command, self.folder)
        sys.exit(status)

    def poll(self) -> int | None:
        """Its exit status, if it has ended."""
        return self.exitcode

    def communicate(self) -> tuple[str, str]:
        """What it printed, once it has ended."""
        self.join(WAIT_SECONDS)
        assert self.exitcode is not None, "it hangs"
        output, errors = (Path(self.said, name).read_text() for name in ("stdout", "stderr"))
        return output, errors

    def ended(self) -> subprocess.CompletedProcess[str]:
        """Wait for its end."""
        output, errors = self.communicate()
        return subprocess.CompletedProcess(self.command, self.exitcode, output, errors)


def run_forked(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run to the end: for commands that change their process, such as scripts that register something."""
    return Forked(command, folder).ended()


def kill_when(command: list[str], folder: Path, reached: Callable[[], bool]) -> None:
    """Start a command, and kill its own process as soon as `reached()`; its workers must notice."""
    started = Forked(command, folder)
    until(reached, started, often=0.01)
    started.kill()
    assert started.ended().returncode == -signal.SIGKILL

"""Worker processes that end with their parent."""

import os
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from threading import Thread

WAIT_SECONDS = 1.0


def end_with_parent() -> None:
    """In a worker process: exit when the parent has ended, also if it was killed."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def end_processes(processes: Sequence[BaseProcess]) -> None:
    """Send SIGTERM until all have ended: Python drops what a handler raises while objects are freed."""
    while running := [process for process in processes if process.is_alive()]:
        for process in running:
            process.terminate()
        wait([process.sentinel for process in running], WAIT_SECONDS)

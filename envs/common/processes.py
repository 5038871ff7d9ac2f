"""Processes that don't outlive who started them."""

import os
import time
from threading import Thread


def end_with_parent() -> None:
    """In a worker process: stop when the parent is gone, however it went."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()

"""Worker processes that end with their parent."""

import os
import time
from threading import Thread


def end_with_parent() -> None:
    """In a worker process: exit when the parent has ended, also if it was killed."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()

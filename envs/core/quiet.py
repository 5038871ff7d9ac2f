"""Silences what libraries log while they fetch or build a model: an error that matters is raised as well."""

import contextlib
import logging
import threading
from collections.abc import Iterator

# The hub's client tells of each of its five attempts, twice; the root logger is open_clip's.
LOGGERS = ("", "huggingface_hub")


class Silence:
    """Levels of loggers, kept while anybody wants them silent: several threads may, and end in any order."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.wanted = 0
        self.before: dict[str, int] = {}

    def begin(self) -> None:
        """Silence the loggers, where nobody has yet."""
        with self.lock:
            if not self.wanted:
                self.before = {name: logging.getLogger(name).level for name in LOGGERS}
                self.set(dict.fromkeys(LOGGERS, logging.CRITICAL))
            self.wanted += 1

    def end(self) -> None:
        """Give the loggers their levels back, where nobody else wants them silent."""
        with self.lock:
            self.wanted -= 1
            if not self.wanted:
                self.set(self.before)

    def set(self, levels: dict[str, int]) -> None:
        """Set levels by logger."""
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


SILENCE = Silence()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep these loggers silent up to errors; a function may be decorated with it."""
    SILENCE.begin()
    try:
        yield
    finally:
        SILENCE.end()

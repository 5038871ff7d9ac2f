"""Shows the progress of long work, as bars on a terminal and elsewhere as a line now and then; silences libraries'
logs."""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def progress_bar() -> "Progress":
    """A bar with the number done, and the time that passed and is left."""
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    return Progress(*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())


@dataclass
class PlainLines:
    """Prints a line at most every `seconds` where there is no terminal to draw a bar on."""

    seconds: float = 10.0
    last: float = field(default_factory=time.monotonic)
    grows: bool = False
    """Whether more work may follow than is known."""

    def due(self) -> bool:
        """Whether a line is due (never on a terminal); if so, the next one is due `seconds` later."""
        if sys.stdout.isatty() or time.monotonic() - self.last < self.seconds:
            return False
        self.last = time.monotonic()
        return True

    def report(self, bar: "Progress", task: "TaskID", more: Callable[[], str] = str) -> None:
        """Print the state of a bar, followed by the text of `more`, if a line is due."""
        if not self.due():
            return
        state = bar.tasks[task]
        left = "?" if state.time_remaining is None else f"{state.time_remaining / 60:.0f}"
        left = f"{'at least ' * self.grows}{left} minutes left"
        line = f"{state.description}: {state.completed:.0f} of {state.total or 0:.0f}, {left}"
        print("; ".join(filter(None, (line, more()))), flush=True)


@dataclass
class Sparing:
    """Runs a slow action only if all its runs so far took at most `share` of the time since the start."""

    share: float = 0.02
    started: float = field(default_factory=time.monotonic)
    spent: float = 0.0

    def __call__(self, action: Callable[[], object]) -> bool:
        """Run `action` or skip it this time; returns whether it ran."""
        now = time.monotonic()
        if self.spent > self.share * (now - self.started):
            return False
        action()
        self.spent += time.monotonic() - now
        return True


@contextlib.contextmanager
def progress_bars(*stages: str) -> Iterator[Callable[[str, int, int], None]]:
    """Yield `show(stage, done, total)`, which draws bars until the end on a terminal, elsewhere lines now and then."""
    from rich import progress

    lines = PlainLines()
    with progress.Progress(transient=True, disable=not sys.stdout.isatty()) as bars:
        tasks = {stage: bars.add_task(stage, total=None) for stage in stages}

        def show(stage: str, done: int, total: int) -> None:
            bars.update(tasks[stage], completed=done, total=total)
            lines.report(bars, tasks[stage])

        yield show


# The hub's client reports each of its five attempts twice; open_clip logs to the root logger.
LOGGERS = ("", "huggingface_hub")


_silent = threading.RLock()


@contextlib.contextmanager
def silence_loggers() -> Iterator[None]:
    """Silence all but critical messages of `LOGGERS` inside this context; also works as a decorator. One thread at a
    time."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    with _silent:
        before = [logger.level for logger in loggers]
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)

"""Progress of long work: bars on a terminal, else a line now and then."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def progress_bar() -> "Progress":
    """A bar with the number done and the estimated time left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )


@dataclass
class PlainLines:
    """Prints the state of a bar every `seconds` where there is no terminal to draw it on."""

    seconds: float = 30.0
    last: float = field(default_factory=time.monotonic)

    def report(self, bar: "Progress", task: "TaskID") -> None:
        """Print a line if it is time for one."""
        if bar.console.is_terminal or time.monotonic() - self.last < self.seconds:
            return
        self.last = time.monotonic()
        state = bar.tasks[task]
        left = "?" if state.time_remaining is None else f"{state.time_remaining / 60:.0f}"
        print(f"{state.description}: {state.completed:.0f} of {state.total:.0f}, {left} minutes left", flush=True)


@contextlib.contextmanager
def progress_bars(*stages: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on the terminal for each of `stages`, removed at the end; none where output goes to a file."""
    from rich import progress

    with progress.Progress(transient=True, disable=not sys.stdout.isatty()) as bars:
        tasks = {stage: bars.add_task(stage, total=None) for stage in stages}
        yield lambda stage, done, total: bars.update(tasks[stage], completed=done, total=total)

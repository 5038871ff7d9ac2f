"""The state of a training run, as one file: everything that the rest of the run depends on, and the log so far.

The file is a zip whose parts have checksums; torch writes them but doesn't verify them, so they are verified here. The
state names its run, so that another run's state isn't taken for it.
"""

import contextlib
import io
import math
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file
from menagerie.envs.core.reading import Unreadable, check_accessible, open_file
from menagerie.models.scorer import Scorer

# Exceptions of Python's zip reader for files that are no zip, or a torn one.
BROKEN = (OSError, ValueError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error)
Part = TypeVar("Part")


class HistoryRow(NamedTuple):
    """The numbers of one training step."""

    step: int
    loss: float
    learning_rate: float
    """The highest rate among the scorer's parts."""
    validation: float
    """Accuracy after the step, 0 to 1; nan if validation wasn't evaluated."""
    images_per_second: float
    """Mean since the previous `History.read`."""
    waited: float = math.nan
    """Share of the time since the previous `History.read` in which the process waited for batches; nan in states of
    versions that didn't measure it."""


class History:
    """The log of all steps that were read; part of the run's state, so that a resumed run has each step once.

    A loss stays on its device until `read`, which waits for every step so far. Images per second are measured between
    two reads, so that on a GPU only finished steps count, whatever is still queued.
    """

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.rows: list[HistoryRow] = []
        self.finite = True
        """Whether every loss that was read is a finite number."""
        self._unread: list[tuple[int, Float[Tensor, ""], float]] = []
        self.restart()

    def restart(self) -> None:
        """Restart the clock, so that time since the last read that wasn't spent on training doesn't count."""
        self._since, self._waited = time.perf_counter(), 0.0

    def time_waiting(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield the batches, and add up how long the run waits for them."""
        source = iter(parts)
        while True:
            asked = time.perf_counter()
            try:
                part = next(source)
            except StopIteration:
                return
            self._waited += time.perf_counter() - asked
            yield part

    def add(self, step: int, loss: Float[Tensor, ""], learning_rate: float) -> None:
        """Add a step, without waiting for its loss."""
        self._unread.append((step, loss.detach(), learning_rate))

    def read(self) -> None:
        """Wait for the added steps, and turn them into rows."""
        if not self._unread:
            return
        losses = torch.stack([loss for _, loss, _ in self._unread]).tolist()
        seconds = max(time.perf_counter() - self._since, 1e-9)
        speed, waited = self.batch * len(losses) / seconds, self._waited / seconds
        for (step, _, rate), loss in zip(self._unread, losses, strict=True):
            self.rows.append(HistoryRow(step, loss, rate, math.nan, speed, waited))
        self.finite &= all(map(math.isfinite, losses))
        self._unread.clear()
        self.restart()

    def note(self, accuracy: float) -> None:
        """Add the accuracy on validation to the last row."""
        self.rows[-1] = self.rows[-1]._replace(validation=accuracy)

    def table(self) -> Float[Tensor, "n 6"]:
        """All rows as one tensor, to be saved in the run's state."""
        return torch.tensor(self.rows, dtype=torch.float64).reshape(-1, len(HistoryRow._fields))

    def take(self, table: Sequence[Sequence[float]]) -> None:
        """Replace the history's rows by those of a state."""
        self._unread.clear()
        self.rows = [HistoryRow(int(step), *rest) for step, *rest in table]
        self.restart()


@dataclass(frozen=True)
class StateFile:
    """The file to which a run saves its states."""

    path: Path
    run: str = ""
    """Name of the run."""


def save_state(file: StateFile, scorer: Scorer, optimizer: torch.optim.Optimizer, step: int, history: History) -> None:
    """Save everything that the rest of the run depends on, and the rows of all steps so far."""
    state = {"step": step, "scorer": scorer.state_dict(), "optimizer": optimizer.state_dict()}
    write_state(file, state | {"history": history.table()})


def load_state(
    file: StateFile, scorer: Scorer, optimizer: torch.optim.Optimizer, history: History | None = None
) -> int:
    """Load a state that `save_state` wrote, and return the step to continue from; 0 if there is no file.

    A damaged state is ignored with a message, and training starts anew. Raises for any other state that can't be used,
    such as another run's.
    """
    state = read_state(file)
    if state is None:
        return 0
    with resume_errors(file.path):
        scorer.load_state_dict(state["scorer"])
        optimizer.load_state_dict(state["optimizer"])
        if history is not None:
            history.take(state["history"].tolist())
        return state["step"]


def write_state(file: StateFile, state: dict[str, Any]) -> None:
    """Write a state under its run's name, whole or not at all."""
    content = io.BytesIO()  # for a full disk, torch would report an unexpected position
    torch.save(state | {"run": file.run}, content)
    with whole_file(file.path) as temporary:
        temporary.write_bytes(content.getbuffer())


def read_state(file: StateFile) -> dict[str, Any] | None:
    """Read a run's state; None if there is none, or, with a message, if it is damaged. Raises for another run's state
    and for an intact file that can't be loaded."""
    path = file.path
    if not path.exists() and not path.is_symlink():
        return None
    if problem := damage(path):
        print(f"warning: {path} is damaged ({problem}); this run is trained from its first step", flush=True)
        return None
    with resume_errors(path):
        state = torch.load(path, weights_only=True, map_location="cpu")  # the optimiser's step counts stay on the CPU
        run = state["run"]
    if run != file.run:
        raise UserError(f"{path} is a state of another run, {run!s:.50}; put it back there: then this run goes on")
    return state


def copy_state(source: StateFile, target: StateFile) -> None:
    """Copy the state of one run to another, which continues from it; a damaged state isn't copied."""
    if (state := read_state(source)) is not None:
        write_state(target, state)


def damage(path: Path) -> str:
    """Describe the damage in a state file; empty if it is intact."""
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as parts:
            wrong = parts.testzip()
        return f"{wrong} was changed since it was written" if wrong else ""
    except Unreadable as error:
        raise UserError(f"{path} can't be resumed from ({error}); delete it to train anew") from error
    except BROKEN as error:
        check_accessible(path, error)
        return str(error)


@contextlib.contextmanager
def resume_errors(path: Path):
    """Turn any exception for a foreign or damaged file into one clear error."""
    try:
        yield
    except Exception as error:
        no_memory = isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)
        check_accessible(path, MemoryError() if no_memory else error)
        raise UserError(f"{path} can't be resumed from ({type(error).__name__}); delete it to train anew") from error

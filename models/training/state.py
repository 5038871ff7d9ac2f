"""Everything that the rest of a training run depends on, and what it was like so far, as one file.

It is a zip with a checksum of every part, which torch writes and doesn't look at; here it is looked at. It says whose
state it is, so that no other run's passes for it.
"""

import contextlib
import time
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import unwritable, whole_file
from menagerie.envs.core.reading import Unreadable, check_accessible, open_file
from menagerie.models.scorer import Scorer

# What Python's reader of zips raises for what is none, or for a torn one.
BROKEN = (OSError, ValueError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error)


class Row(NamedTuple):
    """The numbers of one training step."""

    step: int
    loss: float
    learning_rate: float
    """The highest of all parts of the scorer."""
    validation: float
    """Accuracy after the step, 0 to 1; nan where nobody looked."""
    images_per_second: float
    """Mean since the read before."""


class History:
    """The rows of all steps that were read; part of the run's state, so that a resumed run has each step once.

    A loss stays on its device until `read`, which waits for every step so far: images per second are counted from one
    read to the next, so that they are those of steps that are done, whatever was still queued on a GPU.
    """

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.rows: list[Row] = []
        self._unread: list[tuple[int, Float[Tensor, ""], float]] = []
        self.restart()

    def restart(self) -> None:
        """Count time from now on: what was done since the last read is no training."""
        self._since = time.perf_counter()

    def add(self, step: int, loss: Float[Tensor, ""], learning_rate: float) -> None:
        """Note a step, without waiting for its loss."""
        self._unread.append((step, loss.detach(), learning_rate))

    def read(self) -> None:
        """Wait for the steps that were added, and turn them into rows."""
        if not self._unread:
            return
        losses = torch.stack([loss for _, loss, _ in self._unread]).tolist()
        seconds = time.perf_counter() - self._since
        speed = self.batch * len(losses) / max(seconds, 1e-9)
        for (step, _, rate), loss in zip(self._unread, losses, strict=True):
            self.rows.append(Row(step, loss, rate, float("nan"), speed))
        self._unread.clear()
        self.restart()

    def note(self, accuracy: float) -> None:
        """Add the accuracy on validation to the last row."""
        self.rows[-1] = self.rows[-1]._replace(validation=accuracy)

    def table(self) -> Float[Tensor, "n 5"]:
        """All rows, for a state."""
        return torch.tensor(self.rows, dtype=torch.float64).reshape(-1, len(Row._fields))

    def take(self, table: Sequence[Sequence[float]]) -> None:
        """Go on after the rows of a state."""
        self._unread.clear()
        self.rows = [Row(int(step), *rest) for step, *rest in table]
        self.restart()


@dataclass(frozen=True)
class StateFile:
    """The file to which a run saves its states."""

    path: Path
    run: str = ""
    """The run's name."""


def save_state(file: StateFile, scorer: Scorer, optimizer: torch.optim.Optimizer, step: int, history: History) -> None:
    """Everything that the rest of the run depends on, and the rows of all steps before."""
    state = {"step": step, "scorer": scorer.state_dict(), "optimizer": optimizer.state_dict()}
    write_state(file, state | {"history": history.table()})


def load_state(
    file: StateFile, scorer: Scorer, optimizer: torch.optim.Optimizer, history: History | None = None
) -> int:
    """Load what `save_state` wrote and return the step to go on from; 0 where there is no file.

    One that was damaged on the disk is left aside, with a line: training begins anew. A state of another run raises.
    """
    state = read_state(file)
    if state is None:
        return 0
    with damaged_state(file.path):
        scorer.load_state_dict(state["scorer"])
        optimizer.load_state_dict(state["optimizer"])
        if history is not None:
            history.take(state["history"].tolist())
        return state["step"]


def write_state(file: StateFile, state: dict[str, Any]) -> None:
    """Write a state under its run's name, whole or not at all."""
    with whole_file(file.path) as temporary, temporary.open("wb") as opened:
        noted = NotedErrors(opened)
        try:
            torch.save(state | {"run": file.run}, noted)
        except (OSError, RuntimeError):  # torch says of a full disk that it is at an unexpected place
            if noted.error:
                raise unwritable(file.path, noted.error) from noted.error
            raise


def read_state(file: StateFile) -> dict[str, Any] | None:
    """A state of a run; None where there is none, or where it was damaged, with a line. Another run's raises."""
    path = file.path
    if not path.exists() and not path.is_symlink():
        return None
    if problem := damage(path):
        print(f"warning: {path} is damaged ({problem}); this run is trained from its first step", flush=True)
        return None
    with damaged_state(path):
        state = torch.load(path, weights_only=True, map_location="cpu")  # steps of the optimiser stay there
        run = state["run"]
    if run != file.run:
        raise UserError(f"{path} is a state of another run, {run!s:.50}; put it back there: then this run goes on")
    return state


def hand_on(source: StateFile, target: StateFile) -> None:
    """Copy the state of one run for another one, which goes on from it; nothing is copied where it was damaged."""
    if (state := read_state(source)) is not None:
        write_state(target, state)


class NotedErrors:
    """A file as torch writes it; what the system said of a failed write is kept, which torch passes over."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.error: OSError | None = None

    def write(self, content: bytes | memoryview) -> int:
        """Write bytes."""
        try:
            return self.file.write(content)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        """Have all of it written."""
        self.file.flush()


def damage(path: Path) -> str:
    """Say what is damaged in a state file; empty if it is whole."""
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
def damaged_state(path: Path):
    """Turn whatever a foreign or damaged file raises into one clear error."""
    try:
        yield
    except Exception as error:
        check_accessible(path, MemoryError() if is_out_of_memory(error) else error)
        raise UserError(f"{path} can't be resumed from ({type(error).__name__}); delete it to train anew") from error


def is_out_of_memory(error: Exception) -> bool:
    """Whether torch found no memory, on the processor or on a GPU."""
    return isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)

"""The training log of a cell: `training.csv` with a row a step, and the loggers that `--log` chose.

The rows come from the state that a run goes on from (models/training/state.py), so the file has every step once
however often the run was stopped. While a run lasts the file grows; a process that is killed may cut its last
line short, and the next one writes it anew.
"""

import csv
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import numpy as np
from jaxtyping import Float64

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_csv, writing
from menagerie.envs.core.reading import read_text
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.loggers import LOGGERS, Logger
from menagerie.studies.runs.results import checked_file

if TYPE_CHECKING:
    from menagerie.models.training.state import History, Row


class StepClock:
    """Processor time (s) of steps, all threads of this process counted, processes that prepare batches not.

    Stopped after each step and started again when what follows it (looks, logs) is done. The first step after a pause,
    which loads and compiles, doesn't count; the median doesn't see the few steps before which a state was saved.
    """

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.started: float | None = None

    def start(self) -> None:
        self.started = time.process_time()

    def stop(self) -> None:
        if self.started is not None:
            self.steps.append(time.process_time() - self.started)

    def pause(self) -> None:
        self.started = None

    @property
    def median(self) -> float | None:
        """Seconds of a step; None if none was timed."""
        return statistics.median(self.steps) if self.steps else None


Result = TypeVar("Result")
FILE = "training.csv"
COLUMNS = ("step", "loss", "learning_rate", "validation", "images_per_second")


class CsvFile:
    """The rows as a table; timing is its last column, all others depend on nothing but the cell."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: IO[str] | None = None

    def write(self, rows: Sequence["Row"]) -> None:
        """Add lines to the file, which the first call writes anew."""
        if self.file is None:
            write_csv(self.path, COLUMNS, map(fields_of, rows))
            self.file = self.path.open("a", newline="", encoding="utf-8")
            return
        with writing(self.path):
            csv.writer(self.file, lineterminator="\n").writerows(map(fields_of, rows))
            self.file.flush()

    def close(self) -> None:
        """Flush it to disk."""
        if self.file is not None:
            with writing(self.path), self.file:
                os.fsync(self.file.fileno())


def fields_of(row: "Row") -> tuple[str, ...]:
    """A row as text: enough digits to tell any two losses apart, and nothing where nobody looked at validation."""
    validation = "" if math.isnan(row.validation) else f"{row.validation:.6g}"
    return str(row.step), f"{row.loss:.9g}", f"{row.learning_rate:.9g}", validation, f"{row.images_per_second:.6g}"


class Latest:
    """The last row in a few words, for who waits."""

    def __init__(self) -> None:
        self.text, self.validation = "", ""

    def write(self, rows: Sequence["Row"]) -> None:
        looks = [row.validation for row in rows if not math.isnan(row.validation)]
        self.validation = f", validation {looks[-1]:.1%}" if looks else self.validation
        self.text = f"loss {rows[-1].loss:.3g}{self.validation}, {rows[-1].images_per_second:.0f} images/s"

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class TrainingLog:
    """Passes each row of a history to all loggers, once."""

    def __init__(self, history: "History", loggers: Sequence[Logger]) -> None:
        self.history, self.loggers, self.written = history, loggers, 0

    def aside(self, action: Callable[[], Result]) -> Result:
        """Do something without counting its time as training."""
        self.history.read()
        try:
            return action()
        finally:
            self.history.restart()

    def note(self, accuracy: Callable[[], float]) -> None:
        """Look at validation after the last step."""
        value = self.aside(accuracy)
        self.history.note(value)

    def write(self) -> None:
        """Pass on what was read since the last call."""
        if new := self.history.rows[self.written :]:
            for logger in self.loggers:
                logger.write(new)
            self.written += len(new)


@contextmanager
def training_log(job: Job, loggers: Sequence[Logger] = ()) -> Iterator[TrainingLog]:
    """The log of a cell while it trains; what was read is written also where the training fails."""
    from menagerie.models.training.state import History

    every = [CsvFile(job.folder / FILE), *(LOGGERS[name](job) for name in job.execution.log), *loggers]
    log = TrainingLog(History(job.cell.recipe.batch), every)
    try:
        yield log
    finally:
        log.write()
        for logger in every:
            logger.close()


def read_training(folder: Path) -> dict[str, Float64[np.ndarray, " n"]]:
    """The columns of a cell's `training.csv`, nan where a field is empty; a last line that was cut short is left out.

    Empty where there is no file; one that isn't as it was when the cell was finished raises.
    """
    if not (folder / FILE).exists():
        return {}
    try:
        text = read_text(checked_file(folder, FILE))
        rows = [line.split(",") for line in text[: text.rfind("\n") + 1].splitlines()[1:]]
        numbers = [[float(field or "nan") for field in row] for row in rows]
        table = np.array(numbers, np.float64).reshape(-1, len(COLUMNS))
    except ValueError as error:
        raise UserError(f"{folder / FILE} can't be read ({error}); delete it: only its curves are lost") from error
    return dict(zip(COLUMNS, table.T, strict=True)) if len(table) else {}

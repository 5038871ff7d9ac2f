"""The training log of a cell: `training.csv` with a row per step, and the loggers of `--log`.

Earlier rows are in the state from which a run continues (models/training/state.py), so the file has every step once,
however often the run was stopped. The file grows during a run. A killed process may leave an incomplete last line; the
next process rewrites the file.
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
    from menagerie.models.training.state import History, HistoryRow


class StepClock:
    """Measures the processor time (s) of steps: all threads of this process, without loader processes.

    It is stopped after each step and started again after evaluation and logging. The first step after a pause, which
    loads and compiles, isn't counted; the few steps that save a state don't change the median.
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
        """Median seconds of a step; None if none was timed."""
        return statistics.median(self.steps) if self.steps else None


Result = TypeVar("Result")
FILE = "training.csv"
COLUMNS = ("step", "loss", "learning_rate", "validation", "images_per_second", "waited")


class CsvFile:
    """The rows as a CSV file. The last two columns are timing; the others depend only on the cell and, for validation,
    on the steps between evaluations."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: IO[str] | None = None

    def write(self, rows: Sequence["HistoryRow"]) -> None:
        """Append lines to the file; the first call replaces the file."""
        if self.file is None:
            write_csv(self.path, COLUMNS, map(fields_of, rows))
            self.file = self.path.open("a", newline="", encoding="utf-8")
            return
        with writing(self.path):
            csv.writer(self.file, lineterminator="\n").writerows(map(fields_of, rows))
            self.file.flush()

    def close(self) -> None:
        """Flush the file to disk."""
        if self.file is not None:
            with writing(self.path), self.file:
                os.fsync(self.file.fileno())


def fields_of(row: "HistoryRow") -> tuple[str, ...]:
    """Write a row as text, with enough digits to distinguish any two losses; missing values are empty."""
    validation = "" if math.isnan(row.validation) else f"{row.validation:.6g}"
    timing = f"{row.images_per_second:.6g}", "" if math.isnan(row.waited) else f"{row.waited:.4f}"
    return str(row.step), f"{row.loss:.9g}", f"{row.learning_rate:.9g}", validation, *timing


class LastRow:
    """A logger that keeps the last row as a text for progress messages."""

    def __init__(self) -> None:
        self.text, self.validation = "", ""

    def write(self, rows: Sequence["HistoryRow"]) -> None:
        evaluated = [row.validation for row in rows if not math.isnan(row.validation)]
        self.validation = f", validation {evaluated[-1]:.1%}" if evaluated else self.validation
        last = rows[-1]
        waited = "" if math.isnan(last.waited) else f", {last.waited:.0%} waiting for batches"
        self.text = f"loss {last.loss:.3g}{self.validation}, {last.images_per_second:.0f} images/s{waited}"

    def close(self) -> None:
        """Do nothing, as no file is open."""


class TrainingLog:
    """Passes each row of a history to all loggers, once."""

    def __init__(self, history: "History", loggers: Sequence[Logger]) -> None:
        self.history, self.loggers, self.written = history, loggers, 0

    def aside(self, action: Callable[[], Result]) -> Result:
        """Call `action` without counting its time as training; returns its result."""
        self.history.read()
        try:
            return action()
        finally:
            self.history.restart()

    def note(self, accuracy: Callable[[], float]) -> None:
        """Evaluate on validation, and write the accuracy into the row of the last step."""
        value = self.aside(accuracy)
        self.history.note(value)

    def write(self) -> None:
        """Pass on the rows since the last call."""
        if new := self.history.rows[self.written :]:
            for logger in self.loggers:
                logger.write(new)
            self.written += len(new)


@contextmanager
def training_log(job: Job, loggers: Sequence[Logger] = ()) -> Iterator[TrainingLog]:
    """Yield the log of a cell during its training; rows are written even if training fails."""
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
    """Read the columns of a cell's `training.csv`: nan for empty fields, without an incomplete last line.

    Empty if there is no file; raises if the file changed since the cell was finished.
    """
    if not (folder / FILE).exists():
        return {}
    try:
        text = read_text(checked_file(folder, FILE))
        _, *rows = [line.split(",") for line in text[: text.rfind("\n") + 1].splitlines()] or [COLUMNS]
        numbers = [[float(field or "nan") for field in row] for row in rows]
        table = np.array(numbers, np.float64).reshape(len(rows), len(COLUMNS))
    except ValueError as error:
        raise UserError(f"{folder / FILE} can't be read ({error}); delete it: only its curves are lost") from error
    return dict(zip(COLUMNS, table.T, strict=True)) if len(table) else {}

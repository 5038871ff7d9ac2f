"""The training log of a cell: `training.csv` with a row per step, and TensorBoard or Weights & Biases if chosen.

Earlier rows are in the state from which a run continues (models/training/state.py), so every step is there once. A
killed process may leave an incomplete last line; the next one rewrites the file.
"""

import csv
import importlib.util
import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import numpy as np
from jaxtyping import Float64

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import file_name, write_csv, writing
from menagerie.envs.core.reading import read_text
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.results import checked_file

if TYPE_CHECKING:
    from menagerie.models.training.state import History, HistoryRow

Result = TypeVar("Result")
FILE = "training.csv"
COLUMNS = ("step", "loss", "learning_rate", "validation", "images_per_second", "waited")


class Logger:
    """Receives every row of a run once, in order; after a restart its first call has all rows again."""

    def write(self, rows: Sequence["HistoryRow"]) -> None:
        """Log the next rows, at least one."""

    def close(self) -> None:
        """Finish, as the run has ended or was stopped."""


class CsvFile(Logger):
    """The rows as a CSV file. The last two columns are timing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: IO[str] | None = None

    def write(self, rows: Sequence["HistoryRow"]) -> None:
        if self.file is None:
            write_csv(self.path, COLUMNS, map(fields_of, rows))
            self.file = self.path.open("a", newline="", encoding="utf-8")
            return
        with writing(self.path):
            csv.writer(self.file, lineterminator="\n").writerows(map(fields_of, rows))
            self.file.flush()

    def close(self) -> None:
        if self.file is not None:
            with writing(self.path), self.file:
                os.fsync(self.file.fileno())


def fields_of(row: "HistoryRow") -> tuple[str, ...]:
    """Write a row as text, with enough digits to distinguish any two losses; missing values are empty."""
    validation = "" if math.isnan(row.validation) else f"{row.validation:.6g}"
    timing = f"{row.images_per_second:.6g}", "" if math.isnan(row.waited) else f"{row.waited:.4f}"
    return str(row.step), f"{row.loss:.9g}", f"{row.learning_rate:.9g}", validation, *timing


class LastRow(Logger):
    """Keeps the last row as a text for progress messages."""

    text = validation = ""

    def write(self, rows: Sequence["HistoryRow"]) -> None:
        evaluated = [row.validation for row in rows if not math.isnan(row.validation)]
        self.validation = f", validation {evaluated[-1]:.1%}" if evaluated else self.validation
        last = rows[-1]
        waited = "" if math.isnan(last.waited) else f", {last.waited:.0%} waiting for batches"
        self.text = f"loss {last.loss:.3g}{self.validation}, {last.images_per_second:.0f} images/s{waited}"


class TensorBoard(Logger):
    """Event files in the run's `tensorboard/`, in a folder for each cell."""

    def __init__(self, job: Job) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder = job.out / "tensorboard" / f"{file_name(job.name).strip('-')}-{job.cell.id}"
        shutil.rmtree(folder, ignore_errors=True)
        self.writer = SummaryWriter(str(folder))

    def write(self, rows: Sequence["HistoryRow"]) -> None:
        for row in rows:
            for name, value in row_numbers(row).items():
                self.writer.add_scalar(name, value, row.step)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class WeightsAndBiases(Logger):
    """A run of Weights & Biases for each cell, in the run's `wandb/`; WANDB_MODE=offline needs no account."""

    def __init__(self, job: Job) -> None:
        import wandb

        out = job.out.resolve()
        name = file_name(f"{out.name}-{job.cell.id}").strip("-")
        for earlier in out.glob(f"wandb/offline-run-*-{name}"):  # of a stopped process: all rows will come again
            shutil.rmtree(earlier)
        how = {"project": os.environ.get("WANDB_PROJECT", "menagerie"), "id": name, "name": job.name, "group": out.name}
        how |= {"dir": str(out), "config": job.cell.settings, "settings": wandb.Settings(console="off", silent=True)}
        try:
            self.run = wandb.init(**how, resume="allow" if os.environ.get("WANDB_MODE") != "offline" else None)
        except wandb.errors.Error as error:
            why = f"--log wandb can't start: {str(error).splitlines()[0]}"
            raise UserError(f"{why}; run `wandb login`, or set WANDB_MODE=offline") from error

    def write(self, rows: Sequence["HistoryRow"]) -> None:
        for row in rows:
            if row.step >= self.run.step:  # the service may have earlier ones already
                self.run.log(row_numbers(row), step=row.step)

    def close(self) -> None:
        self.run.finish()


def row_numbers(row: "HistoryRow") -> dict[str, float]:
    """Return the columns of a row that have a number, except for the step."""
    return {name: value for name, value in row._asdict().items() if name != "step" and not math.isnan(value)}


LOGGERS: dict[str, Callable[[Job], Logger]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}


def check_loggers(names: Sequence[str]) -> None:
    """Raise for a logger whose package isn't installed; doesn't import it."""
    for name in names:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:  # a folder of that name isn't a package
            why = f"--log {name} needs the package {name}: pip install 'binding-menagerie[{name}]'"
            raise UserError(f"{why}, or pip install -e '.[{name}]' where you have the sources")


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
    """Read the columns of a cell's `training.csv`, with nan for empty fields, without an incomplete last line. Empty if
    there is no file; raises if the file changed since the cell was finished."""
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

"""Loggers of training besides the run's file: TensorBoard and Weights & Biases, imported only if chosen."""

import importlib.util
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import file_name
from menagerie.studies.runs.cell import Job

if TYPE_CHECKING:
    from menagerie.models.training.state import HistoryRow


@runtime_checkable
class Logger(Protocol):
    """Receives every row of a run once, in the order of the steps.

    After a restart, the first call has all rows from the first step on; they replace those of the earlier process.
    """

    def write(self, rows: Sequence["HistoryRow"]) -> None:
        """Log the next rows, at least one."""

    def close(self) -> None:
        """Finish, as the run has ended or was stopped."""


class TensorBoard:
    """Event files in the run's `tensorboard/`, in a folder for each cell."""

    def __init__(self, job: Job) -> None:
        self.folder = job.out / "tensorboard" / f"{file_name(job.name).strip('-')}-{job.cell.id}"
        self.writer: Any = None

    def write(self, rows: Sequence["HistoryRow"]) -> None:
        if self.writer is None:
            from torch.utils.tensorboard import SummaryWriter

            shutil.rmtree(self.folder, ignore_errors=True)
            self.writer = SummaryWriter(str(self.folder))
        for row in rows:
            for name, value in row_numbers(row):
                self.writer.add_scalar(name, value, row.step)
        self.writer.flush()

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class WeightsAndBiases:
    """A run of Weights & Biases for each cell, in the run's `wandb/`; WANDB_MODE=offline needs no account."""

    def __init__(self, job: Job) -> None:
        self.job, self.run = job, None

    def write(self, rows: Sequence["HistoryRow"]) -> None:
        """Log the rows that the service doesn't have yet."""
        if self.run is None:
            self.run = self.start()
            rows = [row for row in rows if row.step >= self.run.step]  # the server may have some already
        for row in rows:
            self.run.log(dict(row_numbers(row)), step=row.step)

    def start(self) -> Any:
        """Start or resume the cell's run."""
        import wandb

        out = self.job.out.resolve()
        name = file_name(f"{out.name}-{self.job.cell.id}").strip("-")
        for earlier in out.glob(f"wandb/offline-run-*-{name}"):  # of a stopped process: all rows will come again
            shutil.rmtree(earlier)
        try:
            return wandb.init(
                project=os.environ.get("WANDB_PROJECT", "menagerie"),
                dir=str(out),
                id=name,
                name=self.job.name,
                group=out.name,
                config=self.job.cell.settings,
                resume="allow" if os.environ.get("WANDB_MODE") != "offline" else None,
                settings=wandb.Settings(console="off", silent=True),
            )
        except wandb.errors.Error as error:
            raise UserError(
                f"--log wandb can't start: {str(error).splitlines()[0]}; run `wandb login`, or set WANDB_MODE=offline"
            ) from error

    def close(self) -> None:
        """End the cell's run; offline data stays in its folder for `wandb sync`."""
        if self.run is not None:
            self.run.finish()


LOGGERS = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}


def check_loggers(names: Sequence[str]) -> None:
    """Raise for a logger whose package isn't installed; doesn't import it."""
    for name in names:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:  # a folder of that name isn't a package
            raise UserError(
                f"--log {name} needs the package {name}: pip install 'binding-menagerie[{name}]', "
                f"or pip install -e '.[{name}]' where you have the sources"
            )


def row_numbers(row: "HistoryRow") -> Iterator[tuple[str, float]]:
    """Yield the columns of a row that have a number, except for the step."""
    for name, value in zip(row._fields[1:], row[1:], strict=True):
        if not (name in ("validation", "waited") and math.isnan(value)):
            yield name, value

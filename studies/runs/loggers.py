"""Where the rows of a training run go besides its own file: TensorBoard and Weights & Biases, imported when chosen."""

import importlib.util
import math
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from menagerie.envs.core.errors import UserError
from menagerie.studies.runs.cell import Job

if TYPE_CHECKING:
    from menagerie.models.training.state import Row


@runtime_checkable
class Logger(Protocol):
    """Receives every row of a run once, in the order of the steps.

    The first call of a run that goes on has all rows since its first step: what an earlier process left is replaced.
    """

    def write(self, rows: Sequence["Row"]) -> None:
        """Take the next rows, at least one."""

    def close(self) -> None:
        """The run has ended or was stopped."""


class TensorBoard:
    """Event files in the run's `tensorboard/`, a folder a cell."""

    def __init__(self, job: Job) -> None:
        self.folder = job.out / "tensorboard" / f"{plain_name(job.name)}-{job.cell.id}"
        self.writer: Any = None

    def write(self, rows: Sequence["Row"]) -> None:
        if self.writer is None:
            from torch.utils.tensorboard import SummaryWriter

            shutil.rmtree(self.folder, ignore_errors=True)
            self.writer = SummaryWriter(str(self.folder))
        for row in rows:
            for name, value in numbers(row):
                self.writer.add_scalar(name, value, row.step)
        self.writer.flush()

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class WeightsAndBiases:
    """A run of Weights & Biases for each cell, in the run's `wandb/`; WANDB_MODE=offline needs no account."""

    def __init__(self, job: Job) -> None:
        self.job, self.run = job, None

    def write(self, rows: Sequence["Row"]) -> None:
        """Log what its run doesn't have yet."""
        if self.run is None:
            self.run = self.start()
            rows = [row for row in rows if row.step >= self.run.step]  # a server may have some of them
        for row in rows:
            self.run.log(dict(numbers(row)), step=row.step)

    def start(self) -> Any:
        """Start its run or go on with it."""
        import wandb

        out = self.job.out.resolve()
        name = plain_name(f"{out.name}-{self.job.cell.id}")
        for earlier in out.glob(f"wandb/offline-run-*-{name}"):  # of a process that was stopped: all rows come again
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
        """End its run; what is offline stays in its folder for `wandb sync`."""
        if self.run is not None:
            self.run.finish()


LOGGERS = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}


def check_loggers(names: Sequence[str]) -> None:
    """Raise for a logger whose package isn't installed, without importing it."""
    for name in names:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:  # a folder of that name is no package
            raise UserError(
                f"--log {name} needs the package {name}: pip install 'binding-menagerie[{name}]', "
                f"or pip install -e '.[{name}]' where you have the sources"
            )


def numbers(row: "Row") -> Iterator[tuple[str, float]]:
    """The columns of a row that have a number, but for the step."""
    for name, value in zip(row._fields[1:], row[1:], strict=True):
        if not (name == "validation" and math.isnan(value)):
            yield name, value


def plain_name(text: str) -> str:
    """A text as part of a file's name."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-")

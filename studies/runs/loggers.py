"""Loggers of training besides the run's file: TensorBoard and Weights & Biases, imported only if chosen."""

import importlib.util
import math
import os
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

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


class WeightsAndBiases:
    """A run of Weights & Biases for each cell, in the run's `wandb/`; WANDB_MODE=offline needs no account."""

    def __init__(self, job: Job) -> None:
        import wandb

        out = job.out.resolve()
        name = file_name(f"{out.name}-{job.cell.id}").strip("-")
        for earlier in out.glob(f"wandb/offline-run-*-{name}"):  # of a stopped process: all rows will come again
            shutil.rmtree(earlier)
        named = {"project": os.environ.get("WANDB_PROJECT", "menagerie"), "id": name, "name": job.name}
        resume = "allow" if os.environ.get("WANDB_MODE") != "offline" else None
        quiet = wandb.Settings(console="off", silent=True)
        try:
            self.run = wandb.init(
                **named, dir=str(out), group=out.name, config=job.cell.settings, resume=resume, settings=quiet
            )
        except wandb.errors.Error as error:
            raise UserError(
                f"--log wandb can't start: {str(error).splitlines()[0]}; run `wandb login`, or set WANDB_MODE=offline"
            ) from error

    def write(self, rows: Sequence["HistoryRow"]) -> None:
        for row in rows:
            if row.step >= self.run.step:  # the service may have earlier ones already
                self.run.log(row_numbers(row), step=row.step)

    def close(self) -> None:
        """End the cell's run; offline data stays in its folder for `wandb sync`."""
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


def row_numbers(row: "HistoryRow") -> dict[str, float]:
    """Return the columns of a row that have a number, except for the step."""
    return {name: value for name, value in row._asdict().items() if name != "step" and not math.isnan(value)}

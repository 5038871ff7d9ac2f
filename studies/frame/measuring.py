"""Jobs that take measures of finished cells, and how measures are sent to other processes."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest
from menagerie.envs.core.plugins import OWN_MODULES, own_module
from menagerie.models.kept_states import load_kept_state
from menagerie.studies.frame.measure import END, FOLDER, Measure, class_file, unfindable_class, write_measured
from menagerie.studies.runs.cell import CHECKPOINT, Job
from menagerie.studies.runs.job import AnyJob, Report

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer


class SentMeasure(NamedTuple):
    """The form in which a measure is sent to other processes, without pickling its class."""

    place: str
    """The user's file, or the module, that defines the measure's class."""
    name: str
    fields: dict[str, Any]

    @classmethod
    def of(cls, measure: Measure) -> "SentMeasure":
        """Describe a measure in this form; raises for a class that other processes can't find."""
        kind, values = type(measure), {item.name: getattr(measure, item.name) for item in fields(measure)}
        if "<" in kind.__qualname__:  # <locals>
            raise unfindable_class(kind)
        named = "." in kind.__module__ and not kind.__module__.startswith(OWN_MODULES)
        return cls(kind.__module__ if named else str(class_file(kind)), kind.__qualname__, values)

    def opened(self) -> Measure:
        """Make the measure in this process. Raises if its class can't be found."""
        try:
            found: Any = own_module(self.place) if self.place.endswith(".py") else importlib.import_module(self.place)
            for part in self.name.split("."):
                found = getattr(found, part)
            return found(**self.fields)
        except (ImportError, AttributeError, TypeError) as error:
            raise UserError(
                f"the measure {self.name} isn't in {self.place} any more ({error}); define it in a .py file that all "
                "machines can read, and don't change that file during the run"
            ) from error


@dataclass(frozen=True)
class Measuring(AnyJob):
    """The job of measuring a finished cell: after its last step, at states that were kept, or both."""

    of: Job
    measures: tuple[Measure | SentMeasure, ...]
    at: tuple[int | None, ...] = END

    @cached_property
    def id(self) -> str:
        return f"{self.of.id}-{digest([measure.file(step) for measure, step in self.parts])}"

    @cached_property
    def name(self) -> str:
        return f"{', '.join(type(measure).__name__ for measure in self.here)} of {self.of.name}"

    @property
    def folder(self) -> Path:
        return self.of.folder / FOLDER

    @property
    def group(self) -> str:
        """The data file, which takes seconds to open. Jobs with the same file go to one worker if it is idle."""
        return str(self.of.data_file)

    @property
    def steps(self) -> int:
        return len(self.parts)

    @property
    def threads(self) -> int:
        return self.of.threads

    @property
    def device(self) -> str:
        return self.of.device

    @cached_property
    def here(self) -> tuple[Measure, ...]:
        return tuple(each.opened() if isinstance(each, SentMeasure) else each for each in self.measures)

    @property
    def states(self) -> list[int | None]:
        """The steps after which the cell is measured; None for the end of its training. Steps that the run doesn't
        reach are left out."""
        return [step for step in dict.fromkeys(self.at) if step is None or step <= self.of.steps]

    @property
    def parts(self) -> list[tuple[Measure, int | None]]:
        """The measures to take, each with its step, state by state."""
        return [(each, step) for step in self.states for each in self.here]

    @property
    def missing(self) -> list[tuple[Measure, int | None]]:
        """The parts that aren't measured yet."""
        return [(each, step) for each, step in self.parts if not (self.folder / each.file(step)).exists()]

    @property
    def ended(self) -> bool:
        return not self.missing

    def run(self, report: Report, release: Callable[[], None]) -> None:
        """Measure what isn't measured yet."""
        done = self.steps - len(self.missing)
        for number, _ in enumerate(take_measures(self.of, self.missing), start=done + 1):
            report(number, "")

    def __reduce__(self) -> tuple[Any, ...]:
        # A class that can't be found there is an error only when the job runs.
        return Measuring, (self.of, tuple(map(SentMeasure.of, self.here)), self.at), {"id": self.id, "name": self.name}


def scorer_after(job: Job, step: int | None) -> "Scorer":
    """Load a cell's scorer as it was after a step whose state was kept, or (None) at the end of training."""
    from menagerie.models.checkpoint import load_checkpoint

    if step is None:
        return load_checkpoint(job.folder / CHECKPOINT, job.cell.model)
    return load_kept_state(job.folder, step, job.cell.model)


def take_measures(job: Job, parts: Sequence[tuple[Measure, int | None]]) -> Iterator[Path]:
    """Measure a cell, and yield each file once it is written."""
    import torch

    from menagerie.studies.runs.graphs import give_readers, read_graphs
    from menagerie.studies.runs.machine import settle_torch
    from menagerie.studies.runs.train import open_material

    settle_torch(job.threads)
    material, cell = open_material(job), job.cell
    for after in dict.fromkeys(step for _, step in parts):
        scorer = scorer_after(job, after).to(cell.device)
        give_readers(scorer, read_graphs(job, material))
        for measure in (each for each, step in parts if step == after):
            torch.manual_seed(cell.seed)  # whatever was measured before in this process
            yield write_measured(job.folder, measure, after, measure.rows(scorer.eval(), material, cell.seed))

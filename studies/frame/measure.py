"""Measures of a trained scorer besides its accuracy, taken once for each cell and kept beside its result.

A measure's class may be in a user's study file, which other processes import as a module; then `main` starts nothing.
"""

import importlib
import inspect
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import count, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import changed_fields, digest, json_value
from menagerie.envs.core.plugins import OWN_MODULES, own_module
from menagerie.envs.core.reading import Unreadable
from menagerie.envs.core.records import read_records, write_records
from menagerie.studies.runs.cell import CHECKPOINT, AnyJob, Job, Report

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer
    from menagerie.studies.runs.data import Material

FOLDER = "measures"  # in a cell's
Row = dict[str, Any]
END: tuple[None] = (None,)  # the end of training, in place of steps of kept states


@dataclass(frozen=True)
class Measure(ABC):
    """Something to measure; its fields are its settings."""

    version: ClassVar[int] = 1
    """Increase it when the same settings give other numbers than before. For a class outside of this project a change
    of its source counts too, but not a change of the functions that it calls."""

    @abstractmethod
    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterable[Row]:
        """Yield rows of a tidy table: numbers, texts and lists of them; None or nan for a missing value.

        `scorer` is in evaluation mode on the cell's device and must not be changed. `seed` is the cell's; torch's
        generator is seeded with it.
        """

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Everything besides the cell that decides the numbers."""
        kind = type(self)
        known = {"name": kind.__qualname__, "version": self.version, "settings": changed_fields(self)}
        ours = class_file(kind).is_relative_to(Path(__file__).resolve().parents[1])
        return known | ({} if ours else {"source": digest(inspect.getsource(kind))})

    def __reduce__(self) -> tuple[Any, ...]:
        """Name the class by its module or file: other processes can't import a script that was started."""
        kind, values = type(self), {item.name: getattr(self, item.name) for item in fields(self)}
        file = str(class_file(kind))
        named = "." in kind.__module__ and not kind.__module__.startswith(OWN_MODULES)
        return open_measure, (kind.__module__ if named else file, kind.__qualname__, values)

    def file(self, step: int | None = None) -> str:
        after = "" if step is None else f"-step{step}"
        return f"{type(self).__name__.lower()}-{digest(self.settings)}{after}.jsonl"


def class_file(kind: type) -> Path:
    """Return the file of a class, also of a started script. Raises if other processes can't find the class."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if not file or not Path(file).is_file() or "<" in kind.__qualname__:  # <locals>
        raise UserError(
            f"other processes can't find the measure {kind.__name__}, because its class is in no file, or in a "
            "function; define it at the top level of a .py file"
        )
    return Path(file).resolve()


def write_measured(folder: Path, measure: Measure, step: int | None, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write what was measured of the cell in `folder` after `step`; returns the file. Raises for a value that JSON
    hasn't, and for a column named "step"."""
    lines, kind = [first_line(folder, measure, step)], f"the measure {type(measure).__name__}"
    for row in rows:
        values = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in row.items()}
        lines.append({name: None if value != value else value for name, value in values.items()})
        try:
            json.dumps(lines[-1], allow_nan=False)
        except (TypeError, ValueError) as error:
            way_out = "give numbers, texts and lists of them, and None for a missing value"
            raise UserError(f"{kind} gives a row that can't be written ({error}): {row!s:.200}; {way_out}") from error
        if "step" in row:
            raise UserError(f"{kind} has a column 'step', the name of the column for kept states; rename it")
    write_records(file := folder / FOLDER / measure.file(step), lines)
    return file


def first_line(folder: Path, measure: Measure, step: int | None) -> Row:
    """Return the first line of a file, by which an emptied file differs from one without rows."""
    return {"cell": folder.name, "step": step, **measure.settings}


def read_measured(folder: Path, measure: Measure, at: Sequence[int | None] = END) -> list[Row] | None:
    """Read the rows of a cell's folder at the steps `at`; None if it wasn't measured yet. Rows of kept states begin
    with their "step". Raises `UserError` for a file that is damaged, or is of another cell."""
    found: list[Row] | None = None
    for step in at:
        if not (file := folder / FOLDER / measure.file(step)).exists():
            continue
        try:
            first, *rows = read_records(file) or [{}]
            if first != json_value(first_line(folder, measure, step)):
                raise Unreadable("it is of another cell or measure")
        except Unreadable as error:
            way_out = "delete it and run again: only this is measured anew"
            raise UserError(f"{file} is damaged ({error}); {way_out}") from error
        found = [*(found or []), *(({} if step is None else {"step": step}) | row for row in rows)]
    return found


def open_measure(place: str, name: str, values: dict[str, Any]) -> Measure:
    """Make a measure of the class `name` in a module or a user's file."""
    try:
        module: Any = own_module(place) if place.endswith(".py") else importlib.import_module(place)
        return attrgetter(name)(module)(**values)
    except (ImportError, AttributeError, TypeError) as error:
        raise UserError(
            f"the measure {name} isn't in {place} any more ({error}); define it in a .py file that all machines can "
            "read, and don't change that file during the run"
        ) from error


@dataclass(frozen=True)
class Measuring(AnyJob):
    """The job of measuring a finished cell: after its last step, at states that were kept, or both."""

    of: Job
    measures: tuple[Measure, ...]
    at: tuple[int | None, ...] = END

    @cached_property
    def id(self) -> str:
        return f"{self.of.id}-{digest([measure.file(step) for measure, step in self.parts])}"

    @cached_property
    def name(self) -> str:
        return f"{', '.join(type(measure).__name__ for measure in self.measures)} of {self.of.name}"

    def __post_init__(self) -> None:
        alike = {"folder": self.of.folder / FOLDER, "threads": self.of.threads, "device": self.of.device}
        # Jobs with the same data file, which takes seconds to open, go to one worker if it is idle.
        vars(self).update(alike, group=str(self.of.data_file))

    @property
    def steps(self) -> int:
        return len(self.parts)

    @property
    def parts(self) -> list[tuple[Measure, int | None]]:
        """The measures to take, each with its step, state by state, without steps that the run doesn't reach."""
        states = [step for step in dict.fromkeys(self.at) if step is None or step <= self.of.steps]
        return [(each, step) for step in states for each in self.measures]

    @property
    def missing(self) -> list[tuple[Measure, int | None]]:
        return [(each, step) for each, step in self.parts if not (self.folder / each.file(step)).exists()]

    @property
    def ended(self) -> bool:
        return not self.missing

    def run(self, report: Report, release: Callable[[], None]) -> None:
        import torch

        from menagerie.models.checkpoint import load_checkpoint
        from menagerie.models.kept_states import load_kept_state
        from menagerie.studies.runs.graphs import give_readers, open_material, read_graphs
        from menagerie.studies.runs.machine import settle_torch

        settle_torch(self.threads)
        material, cell, missing, folder = open_material(self.of), self.of.cell, self.missing, self.of.folder
        number = count(self.steps - len(missing) + 1)
        for step, parts in groupby(missing, key=itemgetter(1)):
            if step is None:
                scorer = load_checkpoint(folder / CHECKPOINT, cell.model).to(cell.device)
            else:
                scorer = load_kept_state(folder, step, cell.model).to(cell.device)
            give_readers(scorer, read_graphs(self.of, material))
            for measure, _ in parts:
                torch.manual_seed(cell.seed)  # whatever was measured before in this process
                write_measured(folder, measure, step, measure.rows(scorer.eval(), material, cell.seed))
                report(next(number), "")

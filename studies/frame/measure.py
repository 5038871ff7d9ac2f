"""Measures of a trained scorer besides its accuracy, taken once for each cell and kept beside its result.

    @dataclass(frozen=True)
    class Norm(Measure):
        power: int = 2

        def rows(self, scorer, material, seed):
            yield {"norm": float(sum((p.detach() ** self.power).sum() for p in scorer.parameters()))}

A measure's class may be in a user's study file. Other processes import that file as a module; then `main` starts
nothing.
"""

import inspect
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import changed_fields, digest, json_value
from menagerie.envs.core.reading import Unreadable
from menagerie.envs.core.records import read_records, write_records

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

    def __init_subclass__(cls) -> None:
        """Make `rows` accept a `LoadedScorer` too, and give it `training` if it has that parameter."""
        super().__init_subclass__()
        if own := vars(cls).get("rows"):

            @wraps(own)
            def rows(self: Measure, scorer: Any, *given: Any, **named: Any) -> Iterable[Row]:
                from menagerie.models.library.loaded import LoadedScorer

                if not isinstance(scorer, LoadedScorer):
                    return own(self, scorer, *given, **named)
                more = {"training": scorer.training()} if "training" in inspect.signature(own).parameters else {}
                return own(self, scorer.scorer, *given, **more | named)

            cls.rows = rows

    @abstractmethod
    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterable[Row]:
        """Yield rows of a tidy table: numbers, texts and lists of them; None or nan for a missing value.

        `scorer` is in evaluation mode on the cell's device and must not be changed: other measures may follow. `seed`
        is the cell's; torch's generator is seeded with it.
        """

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Everything besides the cell that decides the numbers."""
        kind = type(self)
        known = {"name": kind.__qualname__, "version": self.version, "settings": changed_fields(self)}
        ours = class_file(kind).is_relative_to(Path(__file__).resolve().parents[1])
        return known | ({} if ours else {"source": digest(class_source(kind))})

    def file(self, step: int | None = None) -> str:
        """Return the name of the measure's file in a cell's folder."""
        after = "" if step is None else f"-step{step}"
        return f"{type(self).__name__.lower()}-{digest(self.settings)}{after}.jsonl"


def class_file(kind: type) -> Path:
    """Return the file of a class, even if that file was started as a script. Raises if the class has no file."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if not file or not Path(file).is_file():
        raise unfindable_class(kind)
    return Path(file).resolve()


def class_source(kind: type) -> str:
    """Return the source text of a class; raises if there is none."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError) as error:
        raise unfindable_class(kind) from error


def unfindable_class(kind: type) -> UserError:
    """Make the error for a class that other processes can't find."""
    return UserError(
        f"other processes can't find the measure {kind.__name__}, because its class is in no file, or in a function; "
        "define it at the top level of a .py file"
    )


def write_measured(folder: Path, measure: Measure, step: int | None, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write what was measured of the cell in `folder` after `step` (None: after training); returns the file."""
    file = folder / FOLDER / measure.file(step)
    write_records(file, [first_line(folder, measure, step), *(as_json_row(measure, row) for row in rows)])
    return file


def first_line(folder: Path, measure: Measure, step: int | None) -> Row:
    """Return the first line of a file: the cell, the step and the measure. So an emptied file differs from one without
    rows."""
    return {"cell": folder.name, "step": step, **measure.settings}


def as_json_row(measure: Measure, row: Mapping[str, Any]) -> Row:
    """Convert a row to values of JSON; raises for other values, and for a column named "step"."""
    values = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in row.items()}
    values = {name: None if value != value else value for name, value in values.items()}
    try:
        json.dumps(values, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"the measure {type(measure).__name__} gives a row that can't be written ({error}): {row!s:.200}; give "
            "numbers, texts and lists of them, and None for a missing value"
        ) from error
    if "step" in values:
        raise UserError(
            f"the measure {type(measure).__name__} has a column 'step', the name of the column for kept states; rename "
            f"it"
        )
    return values


def read_measured(folder: Path, measure: Measure, at: Sequence[int | None] = END) -> list[Row] | None:
    """Read the rows that were measured of the cell in a folder; None if it wasn't measured yet.

    `at` lists the steps of the kept states that were measured, None for the end of training; rows of states begin with
    their "step". Raises `UserError` for a file that is damaged, or is of another cell.
    """
    files = {step: folder / FOLDER / measure.file(step) for step in at}
    found = {step: read_rows(file, first_line(folder, measure, step)) for step, file in files.items() if file.exists()}
    if not found:
        return None
    return [({} if step is None else {"step": step}) | row for step, rows in found.items() for row in rows]


def read_rows(file: Path, first: Row) -> list[Row]:
    """Read the rows of a file after its first line, which must be `first`."""
    try:
        top, *rows = read_records(file) or [{}]
        if top != json_value(first):
            raise Unreadable("it is of another cell or measure")
    except Unreadable as error:
        raise UserError(f"{file} is damaged ({error}); delete it and run again: only this is measured anew") from error
    return rows

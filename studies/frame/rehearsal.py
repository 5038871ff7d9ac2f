"""Makes the page of a user's study from invented results on `--dry-run`, to find mistakes in it before anything is
trained. Shipped studies have tests instead.
"""

import csv
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder
from menagerie.generators.captions.hard_negatives.tasks import PAIR_TASKS
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.parts import Part, RecordsPart, check_page_parts, part_labels
from menagerie.studies.frame.records import SCORES, Records, missing_labels, unknown_label, wanted_values
from menagerie.studies.frame.study import AnyStudy
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.evaluation import FILE, PREDICTIONS
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import write_result

OURS = Path(__file__).resolve().parents[1]
MOST = 300  # runs; with more, inventing results takes too long
PAIRS = 6  # animal pairs of each test: enough for intervals
MARGINS = (0.5, 0.5, 0.5, 0.0, -0.5, 0.5)  # between the scores of a true and a false caption, by pair
LEVEL = {"accuracy": 0.75, "official": 4 / PAIRS, "tie_rate": 1 / PAIRS, "n": PAIRS}


def check_page(study: AnyStudy, arms: tuple[Arm, ...]) -> None:
    """Make a user's page once from invented results of all arms; an error passes through.

    Does nothing for shipped studies, for more than `MOST` arms, for arms that aren't training runs, for studies with a
    `prepare`, whose arms aren't known yet, and for those that read measures or costs of trained models.
    """
    kind, plain = type(study), (AnyStudy.prepare, AnyStudy.measurements, AnyStudy.measures)
    file = getattr(getattr(kind.page, "__code__", None), "co_filename", "")
    ships = not file or Path(file).resolve().is_relative_to(OURS)
    if ships or (kind.prepare, kind.measurements, kind.measures) != plain:
        return
    if len(arms) > MOST or not all(isinstance(arm.cell, Cell) for arm in arms):
        return
    with scratch_folder() as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arithmetic: all invented runs are equal
        for arm in arms:
            write_invented(out, arm)
        records = InventedRecords(arms, out, values=planned_values(arms), file=file)
        try:
            check_labels(check_page_parts(study.page(records)))
        except UserError as error:
            if error.what:  # a value that isn't among those allowed; else a file that only real runs leave is missing
                raise


@dataclass(frozen=True)
class InventedRecords(Records):
    """Invented records. They print a warning for a value that no run has, for which real records would be empty, and
    refuse to compare with such a value."""

    values: Mapping[str, Sequence[Any]] = field(default_factory=dict, kw_only=True)
    """The values of the labels that the plan gives runs."""
    file: str = field(default="", kw_only=True)
    """The user's file."""
    printed: set[str] = field(default_factory=set, kw_only=True)
    """The warnings so far."""

    def where(self, keep: Callable[[Arm], bool] | None = None, **wanted: Any) -> "InventedRecords":
        for name, value in wanted.items():
            if value != () and (text := self.unknown(name, value)):  # a list of options may be empty
                self.warn(text)
        return cast(InventedRecords, super().where(keep, **wanted))

    def warn(self, text: str) -> None:
        """Print a warning once, with the line of the user's file from which this call comes."""
        lines = [frame.lineno for frame in traceback.extract_stack() if frame.filename == self.file]
        place = f"{Path(self.file).name}, line {lines[-1]}: " if lines else ""
        if (line := f"{place}{text}; the page shows nothing of it") not in self.printed:
            print(line, flush=True)
            self.printed.add(line)

    def estimates(self, by: Any, against: Mapping[str, Any] | None = None, *statistic: Any, **more: Any) -> Any:
        found = super().estimates(by, against, *statistic, **more)
        for name, value in (against or {}).items():
            if text := self.unknown(name, value):
                raise UserError(text, name)
        return found

    def unknown(self, name: str, value: Any) -> str:
        """Write which values there are if no run has this one; else return an empty text."""
        if name not in self.values or not wanted_values(value).isdisjoint(known := self.values[name]):
            return ""
        return f"no run has {name} {value!r}; there are {', '.join(map(repr, known))}"


def planned_values(arms: Iterable[Arm]) -> dict[str, list[Any]]:
    """Return the values of each label of the plan (all but model and seed), as in records."""
    values: dict[str, dict[Any, None]] = {}
    for arm in arms:
        for name in arm.labels:
            values.setdefault(name, {})[arm.place[name]] = None
    return {name: list(found) for name, found in values.items()}


def write_invented(out: Path, arm: Arm) -> None:
    """Write the files that a finished run leaves, with the same scores for all runs."""
    cell, folder = arm.cell, Records((), out).folder(arm)
    folder.mkdir(parents=True)
    tests = ("validation", *cell.tests)
    with (folder / FILE).open("w", newline="") as text:
        writer = csv.DictWriter(text, PREDICTIONS, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(invented_rows(tests))
    four_way_items = {
        f"{part} score": {"accuracy": 0.5, "tie_rate": None, "n": PAIRS} for part in ("text", "image", "group")
    }
    result = {
        **{"id": cell.id, "model": cell.model, "seed": cell.seed, **cell.axes, "settings": cell.settings},
        **{"axes": list(cell.axes), "images_seen": cell.images_seen, "train_images": 1, **cell.data.counts()},
        **{"parameters": 1, "subsets": {test: dict.fromkeys(PAIR_TASKS, LEVEL) | four_way_items for test in tests}},
        **{"loss_negatives": [], "parsed": "", "carried": {}, "seconds": 1.0},
        "provenance": {**provenance(), "step_cpu_seconds": 1.0},
    }
    write_result(folder, result, (FILE,))


def invented_rows(tests: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield records of every task, of the same scenes for all runs."""
    for test in tests:
        for task in PAIR_TASKS:
            for pair, margin in enumerate(MARGINS):
                scene = {"scene": f"{test} {pair}", "animals": f"pair {pair}", "caption": "true", "negative": "false"}
                yield {"subset": test, "task": task, **scene, "score_caption": margin, "score_negative": 0.0}


def check_labels(parts: Iterable[Part]) -> None:
    """Raise for a label in a part that no run has."""
    for part in parts:
        arms = part.records.arms if isinstance(part, RecordsPart) else ()
        if arms and (odd := sorted(missing_labels(part_labels(part), arms) - {*SCORES})):
            raise unknown_label(odd[0], arms).at(f"the part {part.name!r} of the page")
        if arms and (against := getattr(part, "against", None)):
            try:
                part.records.estimates(part_labels(part), against)
            except UserError as error:
                raise error.at(f"the part {part.name!r} of the page") from error

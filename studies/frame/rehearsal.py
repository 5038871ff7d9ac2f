"""Makes the page of a user's study from invented results on `--dry-run`, to find mistakes in it before anything is
trained. Shipped studies have tests instead."""

import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder, write_csv
from menagerie.generators.captions.hard_negatives.tasks import PAIR_TASKS
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.parts import Part, RecordsPart, check_page_parts, part_labels
from menagerie.studies.frame.records import SCORES, Records, missing_labels, unknown_label, wanted_values
from menagerie.studies.frame.study import AnyStudy
from menagerie.studies.runs.evaluation import FILE, PREDICTIONS
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import write_result

OURS = Path(__file__).resolve().parents[1]
MOST = 300  # runs; with more, inventing results takes too long
MARGINS = (0.5, 0.5, 0.5, 0.0, -0.5, 0.5)  # between the scores of a true and a false caption, by animal pair
LEVEL = {"accuracy": 0.75, "official": 4 / 6, "tie_rate": 1 / 6, "n": len(MARGINS)}


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
    if len(arms) > MOST or not all(arm.trains for arm in arms):
        return
    noted: dict[str, None] = {}
    with scratch_folder() as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arithmetic: all invented runs are equal
        for arm in arms:
            write_invented(Records((), out).folder(arm), arm)
        try:
            check_labels(check_page_parts(study.page(InventedRecords(arms, out, planned=arms, file=file, noted=noted))))
        except UserError as error:
            if error.what:  # a value that isn't among those allowed; else a file that only real runs leave is missing
                raise
    for line in noted:
        print(line, flush=True)


@dataclass(frozen=True)
class InventedRecords(Records):
    """Invented records. They note a value that no planned run has, for which real records would be empty, and refuse to
    compare with such a value."""

    planned: tuple[Arm, ...] = field(default=(), kw_only=True)
    """All arms of the plan."""
    file: str = field(default="", kw_only=True)
    """The user's file."""
    noted: dict[str, None] = field(default_factory=dict, kw_only=True)
    """A line for each value that no run has, with the line of the file that names it."""

    def where(self, keep: Callable[[Arm], bool] | None = None, **wanted: Any) -> "Records":
        for name, value in wanted.items():
            if value != () and (text := self.unknown(name, value)):  # a list of options may be empty
                lines = [frame.lineno for frame in traceback.extract_stack() if frame.filename == self.file]
                place = f"{Path(self.file).name}, line {lines[-1]}: " if lines else ""
                self.noted[f"{place}{text}; the page shows nothing of it"] = None
        return super().where(keep, **wanted)

    def estimates(self, by: Any, against: Mapping[str, Any] | None = None, *statistic: Any, **more: Any) -> Any:
        found = super().estimates(by, against, *statistic, **more)
        for name, value in (against or {}).items():
            if text := self.unknown(name, value):
                raise UserError(text, name)
        return found

    def unknown(self, name: str, value: Any) -> str:
        """Write which values there are if no run has this one; else return an empty text. Any model may be named."""
        known = list(dict.fromkeys(arm.place[name] for arm in self.planned if name in arm.labels))
        if not known or not wanted_values(value).isdisjoint(known):
            return ""
        return f"no run has {name} {value!r}; there are {', '.join(map(repr, known))}"


def write_invented(folder: Path, arm: Arm) -> None:
    """Write the files that a finished run leaves, with the same scores of every task for all runs."""
    folder.mkdir(parents=True)
    cell, tests = arm.cell, ("validation", *arm.cell.tests)
    rows = [
        {"subset": test, "task": task, "scene": f"{test} {pair}", "animals": f"pair {pair}"}
        | {"caption": "true", "negative": "false", "score_caption": margin, "score_negative": 0.0}
        for test in tests
        for task in PAIR_TASKS
        for pair, margin in enumerate(MARGINS)
    ]
    write_csv(folder / FILE, PREDICTIONS, ([row.get(name, "") for name in PREDICTIONS] for row in rows))
    four_way = {f"{part} score": LEVEL | {"tie_rate": None} for part in ("text", "image", "group")}
    result = {
        **{"id": cell.id, "model": cell.model, "seed": cell.seed, **cell.axes, "settings": cell.settings},
        **{"axes": list(cell.axes), "images_seen": cell.images_seen, "train_images": 1, **cell.data.counts()},
        **{"parameters": 1, "subsets": {test: dict.fromkeys(PAIR_TASKS, LEVEL) | four_way for test in tests}},
        **{"loss_negatives": [], "parsed": "", "carried": {}, "seconds": 1.0},
        "provenance": {**provenance(), "step_cpu_seconds": 1.0},
    }
    write_result(folder, result, (FILE,))


def check_labels(parts: Iterable[Part]) -> None:
    """Raise for a label in a part that no run has."""
    for part in parts:
        if not isinstance(part, RecordsPart) or not (arms := part.records.arms):
            continue
        try:
            if odd := sorted(missing_labels(part_labels(part), arms) - {*SCORES}):
                raise unknown_label(odd[0], arms)
            if against := getattr(part, "against", None):
                part.records.estimates(part_labels(part), against)
        except UserError as error:
            raise error.at(f"the part {part.name!r} of the page") from error

"""The results of a study's finished runs, as tidy tables and estimates. Loads pandas with the first table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_csv
from menagerie.envs.core.records import write_records
from menagerie.models.cell_results import RESULT
from menagerie.models.registry import short_name
from menagerie.studies.analysis.intervals import Estimate, Statistic
from menagerie.studies.frame.arm import Arm, KnownResults, as_column, label_text
from menagerie.studies.frame.measure import Measure, read_measured
from menagerie.studies.runs.cell import CHECKPOINT, DIVERGED, Start
from menagerie.studies.runs.data import FRACTIONS
from menagerie.studies.runs.folder import id_of
from menagerie.studies.runs.results import CELLS, LEFT_OUT, read_result, read_results, reason_in

if TYPE_CHECKING:
    import pandas as pd

TESTS = ("subset", "task")
PAIRS = "test"  # narrows to pairs of subset and task
RECORD = ("scene", "caption", "animals", "value")  # columns of `points` beside labels and tests


@dataclass(frozen=True)
class Records(KnownResults):
    """The arms of a study in the order of its plan, with the results in their folders. `where` narrows them."""

    arms: tuple[Arm, ...]
    out: Path
    chosen: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    """The subsets and tasks to which these records are narrowed; empty: all."""
    groups: tuple[str, ...] = ()
    group: Callable[[Arm], Mapping[str, str]] | None = None
    four_way_part: str = ""
    """The part of four-way items, text, image or group, that the records of `four_way_items` are valued by."""
    snapshot: dict[Path, dict[str, Any] | None] = field(default_factory=dict, compare=False, repr=False)
    """What `results` has read; narrowed records share it, so that a page shows one moment."""
    missing: list[str] = field(default_factory=list, compare=False, repr=False)
    """The arms whose results were requested but don't exist yet. A plan that requests some may grow."""

    @property
    def owner(self) -> str:
        return id_of(self.out)

    def storage(self, given: str) -> str:
        return given or str(self.out / "journal.log")

    def folder(self, arm: Arm) -> Path:
        return self.out / getattr(arm.cell, "below", "cells") / arm.id

    def has_diverged(self, arm: Arm) -> bool:
        return (self.folder(arm) / DIVERGED).exists()

    def left_out(self, arm: Arm) -> str:
        """Return why an arm was left out; empty if the arm has a result or hasn't ended."""
        return reason_in(self.folder(arm), LEFT_OUT)

    def over(self, arm: Arm) -> bool:
        return self.result(arm) is not None or self.has_diverged(arm) or bool(self.left_out(arm))

    def result(self, arm: Arm) -> dict[str, Any] | None:
        """Return an arm's result, from `snapshot` if it is there; None if there is none yet."""
        folder = self.folder(arm)
        found = self.snapshot[folder] if folder in self.snapshot else read_cell_result(folder)
        if found is None and not (self.has_diverged(arm) or self.left_out(arm)):
            self.missing.append(arm.id)
        return found

    def score(self, arm: Arm, subset: str = "validation", task: str = "swap") -> float | None:
        result = self.result(arm)
        if result is None:
            return 0.0 if self.has_diverged(arm) else None
        accuracy = result["subsets"].get(subset, {}).get(task, {}).get("accuracy")
        if accuracy is None:
            raise UserError(f"{arm.name} has no records of {subset}, {task}; give its split a {subset} subset")
        return float(accuracy)

    def weights(self, arm: Arm, name: str) -> Start | None:
        result = self.result(arm)
        return start_at(self.folder(arm) / CHECKPOINT, arm.cell.model, name, result["images_seen"]) if result else None

    @cached_property
    def results(self) -> list[tuple[Arm, dict[str, Any]]]:
        """The finished arms, each with its result."""
        read = [(arm, self.result(arm)) for arm in self.arms]
        self.snapshot.update({self.folder(arm): result for arm, result in read})
        return [(arm, result) for arm, result in read if result]

    def labels(self, name: str) -> list[Any]:
        """List the values of a label in the order of the plan; subsets and tasks of finished arms only."""
        values = self.scores.get(name, ()) if name in TESTS else (a.place[name] for a in self.arms if name in a.place)
        return list(dict.fromkeys(values))

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests of all arms, in the order of tables."""
        return self.groups or tuple(dict.fromkeys(test for arm in self.arms for test in arm.cell.tests))

    def where(self, keep: Callable[[Arm], bool] | None = None, **wanted: Any) -> "Records":
        """Narrow the records to these values of labels, of `subset` and of `task`. A tuple allows several values, or is
        one value of a label whose values are tuples. `test` takes a tuple of (subset, task) pairs. `keep` chooses among
        arms. Raises for a label that no arm has."""
        chosen, labels = list(self.chosen), {}
        for name, value in wanted.items():
            several = tuple(value) if isinstance(value, tuple | list | set) else (value,)
            if name in (*TESTS, PAIRS):
                chosen.append((name, several))
            else:
                labels[name] = {*map(as_column, several)} | (set() if isinstance(value, set) else {as_column(value)})
        check_labels(labels, self.arms)
        arms = (a for a in self.arms if all(a.place.get(n) in v for n, v in labels.items()) and (not keep or keep(a)))
        return replace(self, arms=tuple(arms), chosen=tuple(chosen))

    def regroup(self, groups: Iterable[str], group: Callable[[Arm], Mapping[str, str]]) -> "Records":
        """Return the records sorted into other tests, `groups`: `group` maps an arm to the test of each scene's key;
        other scenes are left out. Narrow to subsets before calling this."""
        return replace(self, groups=tuple(groups), group=group)

    def four_way_items(self, part: str) -> "Records":
        """Return the swaps that have a counterfactual image, each with the value of its four-way item: 1 if it is right
        by the "text", "image" or "group" score, else 0. Only `points` and `estimates` change."""
        return replace(self.where(task="swap"), four_way_part=part)

    def with_labels(self, more: Callable[[Arm, "Records"], Mapping[str, Any]]) -> "Records":
        """Return these records with further labels of each finished arm."""
        finished = {arm.id for arm, _ in self.results}
        arms = (a._replace(labels={**a.labels, **more(a, self)}) if a.id in finished else a for a in self.arms)
        return replace(self, arms=tuple(arms))

    @cached_property
    def scores(self) -> "pd.DataFrame":
        """A row for each finished arm, subset and task: labels, n, accuracy (a tie is a guess, in four-way items
        wrong)."""
        import pandas as pd

        if self.group:
            return self._scores_of_points()
        rows = [
            {**arm.place, "subset": subset, "task": task, **numbers, "images_seen": result.get("images_seen", 0)}
            for arm, result in self.results
            for subset, tasks in result.get("subsets", {}).items()
            for task, numbers in tasks.items()
        ]
        return self._narrow(pd.DataFrame(rows))

    def _scores_of_points(self) -> "pd.DataFrame":
        """Compute the table of `scores` from the records."""
        if not (labels := [name for name in self.points if name not in RECORD]):
            return self.points  # nothing yet
        return self.points.groupby(labels, sort=False)["value"].agg(accuracy="mean", n="count").reset_index()

    @cached_property
    def points(self) -> "pd.DataFrame":
        """A row for each record of each finished arm: labels, subset, task, scene, caption, animals, and `value`, 1
        where the true caption wins and one half for a tie."""
        import pandas as pd

        from menagerie.studies.frame.estimate import four_way_scores, points_in

        points = partial(four_way_scores, part=self.four_way_part) if self.four_way_part else points_in
        tested = [arm for arm, result in self.results if result.get("subsets")]
        parts = []
        for arm in tested:
            part = self._narrow(points(self.folder(arm)))
            if self.group:
                part = part.assign(subset=part["scene"].map(self.group(arm))).dropna(subset="subset")
            parts.append(part.assign(**arm.place))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def rows_of(self, measure: Measure, at: Sequence[int | None] = (None,)) -> "pd.DataFrame":
        """Return a measure's rows for all finished arms that were measured, with the arms' labels. `at` lists the steps
        of kept states, and None for the end of training; rows of states have the column "step"."""
        import pandas as pd

        found = [(arm, row) for arm, _ in self.results for row in read_measured(self.folder(arm), measure, at) or ()]
        if twice := {name for arm, row in found for name in row.keys() & arm.place.keys()}:
            kind = type(measure).__name__
            raise UserError(f"the measure {kind} has a column {min(twice)!r}, which is a label of runs; rename it")
        return pd.DataFrame([arm.place | row for arm, row in found])

    def _narrow(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        for name, values in self.chosen if len(frame) else ():
            if name == PAIRS:
                frame = frame[[pair in values for pair in zip(frame["subset"], frame["task"], strict=True)]]
            else:
                frame = frame[frame[name].isin(values)]
        return frame.reset_index(drop=True)

    def estimates(
        self,
        by: str | Sequence[str],
        against: Mapping[str, Any] | None = None,
        statistic: tuple[str, Statistic] | None = None,
        seeds: int = 0,
    ) -> dict[tuple[Any, ...], Estimate]:
        """Estimate the mean of all records of each combination of the labels `by`, in the order of the plan.

        `against={"model": "clip"}`: how far each group is above the group that is the same but for these labels, on the
        animal pairs of each seed and test that both have. `statistic=("pairs", area)`: the statistic `area` of the
        means along the label "pairs", over the seeds that all groups have; none without such a seed. Tasks whose
        records aren't kept (four-way items) have a mean without interval, if `by` has the task and neither is given.
        `seeds`: of how many seeds `decides` is, the smallest difference that such studies decide; 0: as there are.
        """
        from menagerie.studies.frame.estimate import estimates, without_records

        by = (by,) if isinstance(by, str) else by
        against = against and {name: as_column(value) for name, value in against.items()}
        check_labels({*by} - {*TESTS}, self.arms)
        if odd := [name for name in against or () if name not in by]:
            raise UserError(f"against={against}: {odd[0]} must be among `by`, got {tuple(by)}", "against")
        found = estimates(self.points, by, against, statistic, seeds) if len(self.points) else {}
        if not self.four_way_part and against is None and statistic is None and "task" in by and len(self.scores):
            kept = set(self.points["task"]) if len(self.points) else set()
            found |= without_records(self.scores[~self.scores["task"].isin(kept)], by)
        return found


class StoredCell(NamedTuple):
    id: str
    model: str
    seed: int
    tests: tuple[str, ...]


def read(folder: Path | str) -> Records:
    """Read the records of the finished runs in a study's folder, for notebooks and scripts.

    Raises `UserError` for a folder that isn't a study's, has no finished run, or has tables of numbers only."""
    out = Path(folder)
    tables = [str(out / name) for name in ("results.csv", "bits.csv") if (out / name).exists()]
    results = [] if tables and not (out / CELLS).exists() else read_results(out)
    if tables and not any(result["subsets"] for result in results):
        raise UserError(f"{out} has no records of tests: its numbers are in {' and '.join(tables)}")
    return Records(tuple(map(stored_arm, results)), out)


def stored_arm(result: Mapping[str, Any]) -> Arm:
    named = dict.fromkeys((*FRACTIONS, *result.get("axes", ())))
    labels = result.get("labels", {name: result[name] for name in named if name in result})
    tests = tuple(name for name in result["subsets"] if name != "validation")
    return Arm(StoredCell(result["id"], result["model"], result["seed"], tests), labels)


def read_cell_result(folder: Path) -> dict[str, Any] | None:
    """Return the result in a cell's folder; None if the cell isn't finished."""
    try:
        return result_at(folder, (folder / RESULT).stat().st_mtime_ns)
    except FileNotFoundError:
        return None


@cache
def result_at(folder: Path, changed: int) -> dict[str, Any] | None:
    """Read the result in a folder, once for each time at which it `changed`."""
    return read_result(folder)


@cache  # finished runs don't change, and hashing weights takes long
def start_at(folder: Path, model: str, name: str, images_seen: int) -> Start:
    from menagerie.models.library.sources import Checkpoint

    return Start(Checkpoint(name, folder, model).identity(), folder.resolve(), name, images_seen)


def check_labels(labels: Iterable[str], arms: Sequence[Arm]) -> None:
    """Raise for a label that no arm has; for none if there are no arms."""
    known = {name for arm in arms for name in arm.place}
    if arms and (odd := sorted({*labels} - known)):
        line = f"no run has a label {odd[0]!r}; labels are {', '.join(sorted(known))}, subset and task"
        raise UserError(line, "label")


SCORES = ("subset", "task", "accuracy", "tie_rate", "n", "images_seen")
"""The columns of `results.csv` after the labels."""


def write_cells(records: Records) -> None:
    """Write `cells.jsonl`, the results of finished runs with their labels."""
    write_records(records.out / CELLS, [result | {"labels": arm.labels} for arm, result in records.results])


def write_cells_and_results(records: Records) -> None:
    """Write `cells.jsonl` and `results.csv`, a row for each subset and task of each finished arm."""
    write_cells(records)
    rows = [
        arm.place | {"subset": subset, "task": task, **scores, "images_seen": result["images_seen"]}
        for arm, result in records.results
        for subset, tasks in result["subsets"].items()
        for task, scores in tasks.items()
    ]
    columns = [*dict.fromkeys(name for arm in records.arms for name in arm.place), *SCORES]
    write_csv(records.out / "results.csv", columns, ([row.get(name) for name in columns] for row in rows))


def compare_runs(first: Path, second: Path) -> Path:
    """Print how the run `second` (B) differs from `first` (A) on the records that both have; writes comparison.csv
    into B."""
    import pandas as pd

    from menagerie.studies.analysis.tables import print_table, to_csv
    from menagerie.studies.frame.estimate import KEY, estimates

    sides = [read(folder).points for folder in (first, second)]
    sides = [side.assign(model=side["model"].map(short_name)) for side in sides]
    labels = [name for name in sides[0] if name not in (*RECORD, *TESTS, "seed") and name in sides[1]]
    on = [*labels, *KEY]
    common = sides[0][on].merge(sides[1][on], on=on)
    if not len(common):
        raise UserError(f"{first} and {second} have no record in common: other models, worlds, splits, places or seeds")
    named = zip(("A", "B"), sides, strict=True)
    both = pd.concat([side.merge(common, on=on).assign(run=name) for name, side in named], ignore_index=True)
    by = [*labels, *TESTS, "run"]
    levels, changes = estimates(both, by), estimates(both, by, against={"run": "A"})
    rows = [
        (
            *(label_text(name, value) for name, value in zip(by, key[:-1], strict=False)),
            *(f"{100 * levels[*key[:-1], run].value:.1f}" for run in ("A", "B")),
            *(str(change), str(change.n)),
        )
        for key, change in sorted(changes.items(), key=lambda item: [*map(str, item[0])])
    ]
    named_numbers = [*levels.items(), *(((*key[:-1], "B - A"), its) for key, its in changes.items())]
    numbers = [dict(zip(by, key, strict=True)) | its._asdict() for key, its in named_numbers]
    to_csv(second / "comparison.csv", pd.DataFrame(numbers))
    header = (*(name.replace("_", " ") for name in by[:-1]), "A", "B", "B - A", "n")
    print_table(header, rows, f"A: {first}   B: {second}")
    return second / "comparison.csv"

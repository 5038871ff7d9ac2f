"""The finished runs of an ablation study, their tables, and what a paper says of its parts beside what came out."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.models.spec import ScorerSpec
from menagerie.studies.ablation.papers import Claim, ablations_of
from menagerie.studies.ablation.rows import SplitRow
from menagerie.studies.analysis.paired_bootstrap import Difference, Points, difference, merged, pooled, read_points
from menagerie.studies.analysis.tables import DASH, described, gap, pivot
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.data import CellData
from menagerie.studies.runs.results import finished

Columns = tuple[tuple[str, str], ...]

# Kind of split -> subset and task of each column. A row's difference is of the first.
COLUMNS: dict[str, Columns] = {
    "spatial": (
        ("left_right_unseen_order", "swap"),
        ("above_under_unseen_order", "swap"),
        ("left_right_unseen_pairs", "swap"),
        ("above_under_unseen_pairs", "swap"),
        ("left_right_seen_order", "swap"),
        ("above_under_seen_order", "swap"),
    ),
    "binding": (
        ("unseen_pairs", "swap"),
        ("seen_pairs", "swap"),
        ("unseen_pairs", "replace texture"),
        ("unseen_pairs", "one animal"),
    ),
}


def columns_of(data: CellData) -> Columns:
    """Subset and task of each column of a split's table: those of its kind, and the tests of hold-out rules."""
    usual = COLUMNS.get(data.kind, tuple((test, "swap") for test in data.tests))
    rule_columns = tuple((test, "swap") for test in data.tests if test.startswith(HELD_OUT))
    return tuple(column for column in usual if column[0] in data.tests and column not in rule_columns) + rule_columns


class Run(NamedTuple):
    """One finished training run."""

    seed: int
    subsets: dict[str, dict[str, dict[str, Any]]]
    """Scores by subset and task."""
    points: Points
    """The scores of the records in the columns of the run's split."""
    ratio: float | None
    """The ratio, after training, of the two weights that the model's ablations compare; None where they name none."""


Runs = Mapping[SplitRow, Sequence[Run]]


def read_runs(spec: ScorerSpec, jobs: Mapping[SplitRow, Sequence[Job]]) -> dict[SplitRow, list[Run]]:
    """The runs that are finished."""
    names = ablations_of(spec).ratio
    return {
        place: [
            read_run(job.folder, job.cell.seed, columns_of(job.cell.data), names)
            for job in batch
            if finished(job.folder)
        ]
        for place, batch in jobs.items()
    }


@cache  # what is finished doesn't change, and the tables are written anew after every run
def read_run(folder: Path, seed: int, columns: Columns, names: tuple[str, str] | None) -> Run:
    """Read a finished run from its folder."""
    points = read_points([(seed, folder)])
    chosen = {key: point for key, point in points.items() if key[1:3] in columns}
    return Run(seed, finished(folder)["subsets"], chosen, ratio(folder / "checkpoint" / "model.safetensors", names))


def ratio(weights: Path, names: tuple[str, str] | None) -> float | None:
    """The first of two scalar weights over the second; None where a model, as another row's, has no such weights."""
    if names is None:
        return None
    from menagerie.models.checkpoint import read_weights

    found = read_weights(weights.parent)
    return float(found[names[0]] / found[names[1]]) if set(names) <= found.keys() else None


def accuracies(runs: Sequence[Run], subset: str, task: str) -> list[float]:
    """Accuracy (%) of every seed that has the subset."""
    values = [run.subsets.get(subset, {}).get(task, {}).get("accuracy") for run in runs]
    return [100 * value for value in values if value is not None]


def accuracy_table(done: Runs, split: str, columns: Columns, base: str, ratio: tuple[str, str] | None) -> pd.DataFrame:
    """A row for each of the study: accuracies, how the first column's differs, and a ratio of weights."""
    names = {column: column_name(*column) for column in columns}
    places = [place for place in done if place.split == split]
    shown = [*names.values(), *([" / ".join(ratio)] if ratio else [])]
    table = described(
        pivot(values_of(done, split, names, ratio), ["row"], ["column"], "value"),
        [place.row for place in places],
        shown,
        scale=1.0,
        deviations=True,
    )
    differences = [DASH if place.row == base else difference_of(done, place, columns, base) for place in places]
    table.insert(len(names), f"{shown[0]}, difference", differences)
    return table.rename_axis("").reset_index()


def column_name(subset: str, task: str) -> str:
    return subset.replace("_", " ") + ("" if task == "swap" else f": {task}")


def values_of(
    done: Runs, split: str, names: Mapping[tuple[str, str], str], ratio: tuple[str, str] | None
) -> pd.DataFrame:
    """A row for each run and column of the tables: accuracy in percent, and the ratio of two weights."""
    cells = []
    for place, runs in done.items():
        for run in runs if place.split == split else ():
            for key, name in names.items():
                cells += [(place.row, run.seed, name, accuracy) for accuracy in accuracies([run], *key)]
            if ratio and run.ratio is not None:
                cells.append((place.row, run.seed, " / ".join(ratio), run.ratio))
    return pd.DataFrame(cells, columns=["row", "seed", "column", "value"])


def difference_of(done: Runs, place: SplitRow, columns: Columns, base: str) -> str:
    """How a row differs from the model as it is in the first column, as text."""
    found = against_base(done, place, columns[:1], base)
    return str(found or gap(done.get(SplitRow(place.split, base)) and done[place]))


def against_base(done: Runs, place: SplitRow, columns: Sequence[tuple[str, str]], base: str) -> Difference | None:
    """How a row differs from the model as it is, over the records of all `columns`; None where one is missing."""
    sides = [done.get(SplitRow(place.split, base), ()), done.get(place, ())]
    points = [pooled(merged(run.points for run in runs), columns) for runs in sides]
    return difference(*points, "", "")


def caption(split: str) -> str:
    return f"Ablations, {split} split: accuracy in percent, mean and deviation over seeds."


# Columns of a claim: the sign of the difference by which it would be right, and what came out.
OUTCOME = ("on our world", "expected")
EXPECTED = {-1: "lower: −", 1: "higher: +"}
# What may come out of a claim, in the words of reports.
VERDICTS = {
    "confirmed": "the interval leaves out 0, on the side that is expected after the paper",
    "contradicted": "the interval leaves out 0, on the other side",
    "undecided": "the interval holds 0, or there is none, or two measures differ in sign: these records don't tell",
    "not tested": "a run that it needs isn't finished, or this study leaves it out",
}


def claim_row(done: Runs, claim: Claim, base: str) -> tuple[str, ...]:
    """A row of the table of claims: the claim, the row that tests it, the columns that are pooled, and the outcome."""
    tests = ", ".join(column_name(*column) for column in claim.columns)
    outcome, delta = verdict(done, claim, base)
    return claim.text, claim.row, f"{claim.split}: {tests}", outcome, EXPECTED[claim.sign], delta


def verdict(done: Runs, claim: Claim, base: str) -> tuple[str, str]:
    """Whether the interval of the difference is on the claim's side of 0, and the difference."""
    delta = against_base(done, SplitRow(claim.split, claim.row), claim.columns, base)
    return judged(delta, claim.sign), str(delta or gap(done.get(SplitRow(claim.split, claim.row), True)))


def judged(delta: Difference | None, sign: int) -> str:
    """Whether the interval of a difference is on one side of 0, and whether that is the side of `sign`."""
    if delta is None:
        return "not tested"
    if not (delta.conclusive and (delta.low > 0 or delta.high < 0)):
        return "undecided"
    return "confirmed" if (delta.mean > 0) == (sign > 0) else "contradicted"


def claimed(spec: ScorerSpec, split: str) -> list[tuple[str, str]]:
    """The columns of a split on which the claims of a model's paper are tested, as (subset, task)."""
    return [column for claim in ablations_of(spec).claims if claim.split == split for column in claim.columns]

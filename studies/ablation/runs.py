"""What the tables of the ablation study need of its finished runs, each read once."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.models.spec import ScorerSpec
from menagerie.studies.ablation.papers import ablations_of
from menagerie.studies.ablation.rows import Place
from menagerie.studies.analysis.paired_bootstrap import Points, read_points
from menagerie.studies.runs.cell import Job, finished
from menagerie.studies.runs.data import CellData

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
    own = tuple((test, "swap") for test in data.tests if test.startswith(HELD_OUT))
    return tuple(column for column in usual if column[0] in data.tests and column not in own) + own


class Run(NamedTuple):
    """One finished training run."""

    seed: int
    subsets: dict[str, dict[str, dict[str, Any]]]
    """Scores by subset and task."""
    points: Points
    """Of the records in the columns of its split."""
    ratio: float | None
    """Of the two weights that the model's ablations compare, after training; None where they name none."""


Runs = Mapping[Place, Sequence[Run]]


def read_runs(spec: ScorerSpec, jobs: Mapping[Place, Sequence[Job]]) -> dict[Place, list[Run]]:
    """The runs that are finished."""
    names = ablations_of(spec).ratio
    return {
        place: [
            read_run(job.folder, job.cell.seed, columns_of(job.cell.data), names) for job in its if finished(job.folder)
        ]
        for place, its in jobs.items()
    }


@cache  # what is finished doesn't change, and the tables are written anew after every run
def read_run(folder: Path, seed: int, columns: Columns, names: tuple[str, str] | None) -> Run:
    """One finished run from its folder."""
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


def merged(runs: Sequence[Run]) -> Points:
    """The points of all seeds."""
    return {key: point for run in runs for key, point in run.points.items()}

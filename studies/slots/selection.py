"""Slots chosen after the fact (SPARO, section 5.1 and table 4): ranked one by one on validation, half of them kept."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from menagerie.envs.core.identity import generator
from menagerie.studies.analysis.paired_bootstrap import Difference, Points, difference, pooled
from menagerie.studies.analysis.tables import DASH, by_task
from menagerie.studies.slots.codes import Coded, Coding

# What slots are ranked by, as the paper ranks them by zero-shot classes: recognition. And binding itself beside it.
RANKINGS: Mapping[str, tuple[str, ...]] = {
    "recognition": ("replace animal", "replace texture"),
    "binding": ("swap",),
}
ALL, BEST, WORST, RANDOM = "all slots", "best half", "worst half", "random half"


Selected = dict[tuple[str, str], Points]  # by ranking ("" for all slots) and half


def slot_accuracies(validation: Coded, tasks: Sequence[str]) -> Float[np.ndarray, " slots"]:
    """Accuracy of each slot by itself on some tasks."""
    its = validation.of_tasks(tasks)
    return its.values(np.eye(its.products.shape[-1], dtype=its.products.dtype)).mean(0)


def selected(codings: Mapping[int, Coding], random_halves: int) -> Selected:
    """The points of all records of the tests with each selection, over all seeds; a random half is a mean over
    `random_halves` of them. Rankings that validation has no items for are left out."""
    points: Selected = {}
    for seed, (validation, tests) in codings.items():
        slots = tests.products.shape[-1]
        draws = generator(seed, "halves of slots")
        random = np.stack([half(draws.permutation(slots)) for _ in range(random_halves)], 1)
        add(points, ("", ALL), tests, np.ones((slots, 1)))
        add(points, ("", RANDOM), tests, random)
        for ranking, tasks in RANKINGS.items():
            if validation.of_tasks(tasks).keys:
                order = np.argsort(-slot_accuracies(validation, tasks), kind="stable")
                add(points, (ranking, BEST), tests, half(order)[:, None])
                add(points, (ranking, WORST), tests, half(order[::-1])[:, None])
    return points


def half(order: np.ndarray) -> Float[np.ndarray, " slots"]:
    """Weight 1 for the first half of slots in an order, else 0."""
    weights = np.zeros(len(order))
    weights[order[: max(1, len(order) // 2)]] = 1
    return weights


def add(points: Selected, place: tuple[str, str], tests: Coded, weights: Float[np.ndarray, "slots v"]) -> None:
    """Add the points of one seed; of several selections their mean."""
    points.setdefault(place, {}).update(tests.points(tests.values(weights).mean(1)))


def tasks_of(points: Points) -> list[str]:
    """The tasks of some records, in the order of reports."""
    return sorted({key[2] for key in points}, key=by_task)


def accuracy(points: Points, tasks: Sequence[str]) -> float:
    """Accuracy (%) over all records of some tasks."""
    values = [point.value for key, point in points.items() if key[2] in tasks]
    return 100 * float(np.mean(values)) if values else np.nan


def over_tasks(first: Points, second: Points, tasks: Sequence[str]) -> Difference | None:
    """How much higher the second is over all records of some tasks, whole pairs of animals drawn."""
    columns = {key[1:3] for key in first if key[2] in tasks}
    return difference(pooled(first, columns), pooled(second, columns), "", "")


def selection_table(points: Selected) -> pd.DataFrame:
    """Table 4: a row for each selection, a column for each task, their average, and its difference from all slots."""
    whole = points["", ALL]
    tasks = tasks_of(whole)
    rows = []
    for (ranking, kept), its in points.items():
        each = [accuracy(its, [task]) for task in tasks]
        delta = None if kept == ALL else over_tasks(whole, its, tasks)
        row = [ranking or DASH, kept, *(f"{value:.1f}" for value in [*each, float(np.mean(each))])]
        rows.append([*row, str(delta or DASH)])
    return pd.DataFrame(rows, columns=["ranked by", "slots", *tasks, "average", "minus all slots"])

"""Slots chosen after the fact (SPARO, section 5.1, table 4): ranked one by one on validation, half of them kept.

The measure, the table of what it measured, and the paper's claim.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from menagerie.envs.core.identity import generator
from menagerie.models.scorer import Scorer
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.claims import Verdict, verdict
from menagerie.studies.frame.estimate import estimates
from menagerie.studies.frame.measure import Measure
from menagerie.studies.frame.parts import Rows
from menagerie.studies.measures.codes import ITEM, Coded, accuracy, coded, tasks_of
from menagerie.studies.runs.data import Material

# What slots are ranked by, as the paper ranks them by zero-shot classes: recognition. And binding itself beside it.
RANKINGS: Mapping[str, tuple[str, ...]] = {
    "recognition": ("replace animal", "replace texture"),
    "binding": ("swap",),
}
SEPARATOR = " | "  # in the names of columns
ALL, BEST, WORST, RANDOM = "all slots", "best half", "worst half", "random half"
NOT_RANKED = {"ranked": "", "kept": ALL}
Kept = tuple[str, str]
"""A ranking, "" for none, and which slots are kept."""
SAYS = """Slots chosen after the fact (table 4): accuracy in percent over all tests, by task, all seeds. Each
slot is ranked by its own accuracy on validation: recognition is replace animal and replace texture, binding is swap.
Random: the mean over several halves."""


@dataclass(frozen=True)
class Selection(Measure):
    """How right some of the slots are: a row for each item of the tests, a column for each selection, such as
    "recognition | best half".

    A random half is the mean over `random_halves` of them. Rankings that validation has no items for are left out.
    """

    slots: int
    random_halves: int
    tests: tuple[str, ...]

    def rows(self, scorer: Scorer, material: Material, seed: int) -> Iterator[dict[str, Any]]:
        validation, tests = (coded(scorer, material.tests, names) for names in (("validation",), self.tests))
        return selected(validation.in_parts(self.slots), tests.in_parts(self.slots), self.random_halves, seed)


def selected(validation: Coded, tests: Coded, random_halves: int, seed: int) -> Iterator[dict[str, Any]]:
    chosen = selections(validation, tests.products.shape[-1], random_halves, seed)
    return tests.rows({SEPARATOR.join(kept): tests.values(weights).mean(1) for kept, weights in chosen.items()})


def selections(
    validation: Coded, slots: int, random_halves: int, seed: int
) -> dict[Kept, Float[np.ndarray, "slots halves"]]:
    """The weights of each selection; one or several, whose mean counts."""
    draws = generator(seed, "halves of slots")
    random = [half(draws.permutation(slots)) for _ in range(random_halves)]
    found = {("", ALL): np.ones((slots, 1)), ("", RANDOM): np.stack(random, 1)}
    for ranking, tasks in RANKINGS.items():
        if validation.of_tasks(tasks).records:
            order = np.argsort(-slot_accuracies(validation, tasks), kind="stable")
            found[ranking, BEST], found[ranking, WORST] = half(order)[:, None], half(order[::-1])[:, None]
    return found


def slot_accuracies(validation: Coded, tasks: Sequence[str]) -> Float[np.ndarray, " slots"]:
    items = validation.of_tasks(tasks)
    return items.values(np.eye(items.products.shape[-1], dtype=items.products.dtype)).mean(0)


def half(order: Shaped[np.ndarray, " slots"]) -> Float[np.ndarray, " slots"]:
    """Weight 1 for the first half of slots in an order, else 0."""
    weights = np.zeros(len(order))
    weights[order[: max(1, len(order) // 2)]] = 1
    return weights


def selection_points(measured: pd.DataFrame) -> pd.DataFrame:
    """A row for each item, ranking and selection, from the rows of `Selection`."""
    if not len(measured):
        return measured
    long = measured.melt(ITEM, [name for name in measured if SEPARATOR in name], "selection").dropna(subset="value")
    names = long.selection.str.split(SEPARATOR, expand=True, regex=False)
    return long.assign(ranked=names[0], kept=names[1])


def selection_table(points: pd.DataFrame) -> Rows:
    """A row for each selection, a column for each task, their average, and its difference from all slots."""
    tasks, deltas = tasks_of(points), estimates(points, ("ranked", "kept"), NOT_RANKED)
    rows = []
    for (ranked, kept), items in points.groupby(["ranked", "kept"], sort=False):
        each = [accuracy(items.value[items.task == task]) for task in tasks]
        delta = None if kept == ALL else deltas.get((ranked, kept))
        row = [ranked or DASH, kept, *(f"{value:.1f}" for value in [*each, float(np.mean(each))])]
        rows.append([*row, str(delta or DASH)])
    return Rows(
        "selection", ("ranked by", "slots", *tasks, "average", "minus all slots"), rows, says=" ".join(SAYS.split())
    )


def selection_verdicts(points: pd.DataFrame) -> Iterator[Verdict]:
    """Test the claim of table 4 of SPARO's paper: the half of the slots that recognise best beats all slots
    together."""
    tests = f"all tests: {', '.join(tasks_of(points)) if len(points) else DASH}"
    texts = {
        ("", ALL): "The half of the slots that recognise best, chosen on validation, is better than all (table 4: "
        "SugarCrepe 76.1 against 73.0); over all tasks",
        ("", RANDOM): "... than random halves (our control)",
        ("recognition", WORST): "... than the worst half (our control)",
    }
    for (ranked, kept), text in texts.items():
        against = {"ranked": ranked, "kept": kept}
        deltas = estimates(points, ("ranked", "kept"), against) if len(points) else {}
        yield verdict(text, f"{BEST} − {kept}", tests, deltas.get(("recognition", BEST)), 1)

"""What SPARO's paper says of slots, held against the records of our tests."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from studies.ablation.report import EXPECTED, judged
from studies.ablation.rows import Place
from studies.ablation.runs import Columns, Runs, merged
from studies.analysis.paired_bootstrap import Difference, difference, pooled
from studies.analysis.tables import DASH
from studies.slots.masks import Masked, changes_elsewhere
from studies.slots.masks import Place as MaskPlace
from studies.slots.selection import ALL, BEST, RANDOM, WORST, Selected, over_tasks, tasks_of


class Verdict(NamedTuple):
    """A row of the report's first table."""

    claim: str
    outcome: str
    """Confirmed, contradicted, undecided or not tested."""
    expected: str
    """The sign of the difference by which it would be right."""
    difference: str


def verdict(claim: str, delta: Difference | None, sign: int) -> Verdict:
    """Whether the interval of a difference is on the claim's side of 0."""
    return Verdict(claim, judged(delta, sign), EXPECTED[sign], str(delta or DASH))


def of_selection(points: Selected) -> list[Verdict]:
    """Table 4."""
    whole = points.get(("", ALL), {})
    tasks = tasks_of(whole)

    def against(first: tuple[str, str], second: tuple[str, str]) -> Difference | None:
        return over_tasks(points[first], points[second], tasks) if first in points and second in points else None

    best = ("recognition", BEST)
    return [
        verdict(
            "The half of the slots that recognise best, chosen on validation, is better than all (table 4: SugarCrepe "
            "76.1 against 73.0); over all tasks",
            *(against(("", ALL), best), 1),
        ),
        verdict("... than random halves (our control)", against(("", RANDOM), best), 1),
        verdict("... than the worst half (our control)", against(("recognition", WORST), best), 1),
    ]


def of_masks(results: Mapping[MaskPlace, Masked], model: str, other: str, task: str) -> list[Verdict]:
    """Table 5: masks trained on one task, and what they change of all others."""
    changes = {place: changes_elsewhere(its, task) for place, its in results.items() if place.task == task}
    slots, numbers, theirs = (
        changes.get(MaskPlace(*place, task), {}) for place in ((model, "slots"), (model, "numbers"), (other, "slots"))
    )

    def against(first: dict, second: dict) -> Difference | None:
        columns = {key[1:3] for key in first}
        return difference(pooled(first, columns), pooled(second, columns), "", "") if first and second else None

    return [
        verdict(
            f"A mask of slots, trained on {task}, harms other tasks less than one of single numbers (table 5, in % of "
            "ImageNet for each % gained: −0.3 against −2.3); over all other tasks",
            *(against(numbers, slots), 1),
        ),
        verdict(
            "... and less than one of equal parts of CLIP's vector with average pooling (table 5: −0.3 against −3.9)",
            *(against(theirs, slots), 1),
        ),
    ]


def of_sweeps(done: Runs, split: str, columns: Columns, swept: Mapping[str, Sequence[int]]) -> list[Verdict]:
    """Figure 3."""

    def against(field: str, first: int, second: int) -> Difference | None:
        sides = [done.get(Place(split, f"{field}={value}"), ()) for value in (first, second)]
        return difference(*(pooled(merged(runs), columns) for runs in sides), "", "")

    verdicts = []
    if len(values := sorted(swept.get("slots", ()))) > 1:
        text = f"Accuracy rises with the number of slots, {values[0]} to {values[-1]} (figure 3)"
        verdicts.append(verdict(text, against("slots", values[0], values[-1]), 1))
    if len(values := sorted(swept.get("dim", ()))) > 2:
        middle = values[len(values) // 2]
        text = f"Accuracy rises with the width of slots, {values[0]} to {middle} (figure 3)"
        verdicts.append(verdict(text, against("dim", values[0], middle), 1))
        text = f"... and falls again, {middle} to {values[-1]} (figure 3)"
        verdicts.append(verdict(text, against("dim", middle, values[-1]), -1))
    return verdicts

"""What SPARO's paper says of slots, held against the records of our tests."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from menagerie.studies.ablation.rows import Place
from menagerie.studies.ablation.tables import EXPECTED, Columns, Runs, column_name, judged, merged
from menagerie.studies.analysis.paired_bootstrap import Difference, difference, pooled
from menagerie.studies.analysis.tables import DASH, by_task
from menagerie.studies.slots.masks import Masked, changes_elsewhere, papers_measure
from menagerie.studies.slots.masks import Place as MaskPlace
from menagerie.studies.slots.runs import title
from menagerie.studies.slots.selection import ALL, BEST, RANDOM, WORST, Selected, over_tasks, tasks_of


class Verdict(NamedTuple):
    """A row of the report's first table."""

    claim: str
    row: str
    """What it is about, and what with it is compared, by their names in the tables."""
    tests: str
    """Whose records are pooled."""
    outcome: str
    """Confirmed, contradicted, undecided or not tested."""
    expected: str
    """The sign of the difference by which it would be right."""
    difference: str


def verdict(claim: str, row: str, tests: str, delta: Difference | None, sign: int) -> Verdict:
    """Whether the interval of a difference is on the claim's side of 0."""
    return Verdict(claim, row, tests, judged(delta, sign), EXPECTED[sign], str(delta or DASH))


def of_selection(points: Selected) -> list[Verdict]:
    """Table 4."""
    whole = points.get(("", ALL), {})
    tasks = tasks_of(whole)

    def against(first: tuple[str, str], second: tuple[str, str]) -> Difference | None:
        return over_tasks(points[first], points[second], tasks) if first in points and second in points else None

    best, tests = ("recognition", BEST), f"all tests: {', '.join(tasks)}"
    return [
        verdict(
            "The half of the slots that recognise best, chosen on validation, is better than all (table 4: SugarCrepe "
            "76.1 against 73.0); over all tasks",
            *(f"{BEST} − {ALL}", tests, against(("", ALL), best), 1),
        ),
        verdict("... than random halves (our control)", f"{BEST} − {RANDOM}", tests, against(("", RANDOM), best), 1),
        verdict(
            "... than the worst half (our control)",
            f"{BEST} − {WORST}",
            tests,
            against(("recognition", WORST), best),
            1,
        ),
    ]


def of_masks(results: Mapping[MaskPlace, Masked], model: str, other: str, task: str) -> list[Verdict]:
    """Table 5: masks trained on one task, and what they change of all others."""
    slots, numbers, theirs = (
        MaskPlace(*place, task) for place in ((model, "slots"), (model, "numbers"), (other, "slots"))
    )

    def measured(claim: str, row: str, first: MaskPlace) -> Verdict:
        sides = [results.get(place) for place in (first, slots)]
        return of_mask_pair(claim, row, task, sides)

    return [
        measured(
            f"A mask of slots, trained on {task}, harms other tasks less than one of single numbers (table 5, in % of "
            "ImageNet for each % gained: −0.3 against −2.3); over all other tasks",
            *(f"{title(model)}, a weight for each slot − for each number", numbers),
        ),
        measured(
            "... and less than one of equal parts of CLIP's vector with average pooling (table 5: −0.3 against −3.9)",
            *(f"{title(model)} − {title(other)}, a weight for each slot", theirs),
        ),
    ]


def of_mask_pair(claim: str, row: str, task: str, sides: Sequence[Masked | None]) -> Verdict:
    """A claim on the second of two masks, in points, whose interval decides, and beside that in the paper's measure: a
    claim that only one of both confirms, or contradicts, is undecided."""
    if None in sides:
        return verdict(claim, row, DASH, None, 1)
    changes = [changes_elsewhere(its, task) for its in sides]
    columns = {key[1:3] for key in changes[0]}
    delta = difference(*(pooled(its, columns) for its in changes), "", "")
    tests = (
        f"all tests: {', '.join(dict.fromkeys(name for _, name in sorted(columns, key=lambda its: by_task(its[1]))))}"
    )
    found = verdict(claim, row, tests, delta, 1)
    theirs, own = (papers_measure(its, task) for its in sides)
    if theirs is None or own is None:
        return found._replace(difference=f"{found.difference}; the paper's measure: {DASH}, too little was gained")
    agrees = (own > theirs) == (delta is not None and delta.mean > 0)
    beside = f"{found.difference}; the paper's measure, % for each % gained: {own:+.3f} against {theirs:+.3f}"
    return found._replace(difference=beside, outcome=found.outcome if agrees else "undecided")


def of_sweeps(done: Runs, split: str, columns: Columns, swept: Mapping[str, Sequence[int]]) -> list[Verdict]:
    """Figure 3."""

    def against(field: str, first: int, second: int) -> Difference | None:
        sides = [done.get(Place(split, f"{field}={value}"), ()) for value in (first, second)]
        return difference(*(pooled(merged(runs), columns) for runs in sides), "", "")

    verdicts, tests = [], ", ".join(column_name(*column) for column in columns)
    if len(values := sorted(swept.get("slots", ()))) > 1:
        text = f"Accuracy rises with the number of slots, {values[0]} to {values[-1]} (figure 3)"
        row = f"number of slots: {values[-1]} − {values[0]}"
        verdicts.append(verdict(text, row, tests, against("slots", values[0], values[-1]), 1))
    if len(values := sorted(swept.get("dim", ()))) > 2:
        middle = values[len(values) // 2]
        text = f"Accuracy rises with the width of slots, {values[0]} to {middle} (figure 3)"
        row = f"width of slots: {middle} − {values[0]}"
        verdicts.append(verdict(text, row, tests, against("dim", values[0], middle), 1))
        text = f"... and falls again, {middle} to {values[-1]} (figure 3)"
        row = f"width of slots: {values[-1]} − {middle}"
        verdicts.append(verdict(text, row, tests, against("dim", middle, values[-1]), -1))
    return verdicts

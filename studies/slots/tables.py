"""The tables of the study of slots, and what SPARO's paper says of slots, held against the records of our tests."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from menagerie.models.registry import spec_of
from menagerie.studies.ablation.rows import SplitRow
from menagerie.studies.ablation.tables import EXPECTED, Columns, Runs, accuracy_table, column_name, judged
from menagerie.studies.analysis.paired_bootstrap import Difference, difference, merged, pooled
from menagerie.studies.analysis.tables import DASH, by_task
from menagerie.studies.frame.cells import title_of
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.results import finished
from menagerie.studies.slots.codes import Coding, codings
from menagerie.studies.slots.masks import (
    ALL,
    BEST,
    RANDOM,
    WORST,
    Masked,
    MaskRow,
    Selected,
    changes_elsewhere,
    mask_table,
    masked,
    over_tasks,
    papers_measure,
    selected,
    selection_table,
    tasks_of,
)
from menagerie.studies.slots.runs import MODEL, Jobs, Rows, shown, whole


class Done(NamedTuple):
    """A study as far as it has come."""

    config: Any
    rows: Rows
    jobs: Jobs
    runs: Runs
    """The results of the jobs that are finished."""
    columns: Columns

    def jobs_of(self, row: str) -> Sequence[Job]:
        """The jobs of a row, finished or not."""
        return self.jobs[SplitRow(self.config.kind, row)]

    def runs_of(self, names: Sequence[str]) -> Runs:
        """The finished runs of some rows."""
        return {place: group for place, group in self.runs.items() if place.row in names}

    @property
    def ladder(self) -> list[str]:
        """The rows of table 6, SPARO first; none where they aren't wanted."""
        return [self.rows.base, *self.rows.ladder] if self.rows.ladder else []

    @property
    def swept(self) -> dict[str, list[int]]:
        """The values of each swept field."""
        return {name: [int(row.partition("=")[2]) for row in rows] for name, rows in self.rows.sweeps.items()}

    @property
    def beside(self) -> list[str]:
        """The models beside SPARO, as reports call them."""
        return [title_of(model) for model in self.config.models if model != MODEL]

    @property
    def slots(self) -> int:
        """The number of slots in unchanged SPARO."""
        return self._options.slots

    @property
    def width(self) -> int:
        """The width of each slot in unchanged SPARO."""
        return self._options.dim

    @property
    def _options(self) -> Any:
        return spec_of(MODEL).configured(self.jobs_of(self.rows.base)[0].cell.options)

    def parameters(self) -> dict[str, int]:
        """The parameters of each row that has a finished run."""
        first = {place.row: done_jobs[0] for place, all_of in self.jobs.items() if (done_jobs := whole(all_of))}
        return {row: finished(job.folder)["parameters"] for row, job in first.items()}


def selections(done: Done) -> Selected:
    """The points of table 4; none where it isn't wanted, or no run is finished."""
    if "selection" not in done.config.parts:
        return {}
    coded = codings(done.jobs_of(done.rows.base))
    in_slots = {seed: Coding(*(items.in_parts(done.slots) for items in coding)) for seed, coding in coded.items()}
    return selected(in_slots, done.config.random_halves)


def trained_masks(done: Done) -> dict[MaskRow, Masked]:
    """The masks of table 5, of all models that have finished; none where it isn't wanted."""
    if "masks" not in done.config.parts:
        return {}
    names = {model: done.rows.base if model == MODEL else title_of(model) for model in done.config.models}
    coded = {model: codings(done.jobs_of(name)) for model, name in names.items()}
    return masked({model: by_seed for model, by_seed in coded.items() if by_seed}, done.slots, done.config.mask_tasks)


def tables_of(done: Done, points: Selected, masks: Mapping[MaskRow, Masked]) -> dict[str, pd.DataFrame]:
    """The tables that there are runs for, by name."""
    tables = {}
    if points:
        tables["selection"] = selection_table(points)
    if masks:
        tables["masks"] = mask_table(masks, {model: title_of(model) for model in done.config.models})
    if done.ladder:
        tables["ladder"] = rows_table(done, done.ladder)
    if any(done.swept.values()):
        swept = [row for rows in done.rows.sweeps.values() for row in rows]
        tables["sweeps"] = rows_table(done, [done.rows.base, *swept, *done.beside])
    return tables


def rows_table(done: Done, names: Sequence[str]) -> pd.DataFrame:
    """A row for each of some rows: parameters, accuracies, and how the first of these differs from SPARO's."""
    table = accuracy_table(done.runs_of(names), done.config.kind, done.columns, done.rows.base, None)
    counts = done.parameters()
    table.insert(1, "parameters", [f"{counts[name]:,}" if name in counts else "" for name in table[""]])
    return table.assign(**{"": table[""].map(shown)}).rename(columns={"": "row"})


class Verdict(NamedTuple):
    """A row of the report's first table."""

    claim: str
    row: str
    """The row that the claim is about and the one that it is compared with, by their names in the tables."""
    tests: str
    """The tests whose records are pooled."""
    outcome: str
    """Confirmed, contradicted, undecided or not tested."""
    expected: str
    """The sign of the difference by which it would be right."""
    difference: str


def verdict(claim: str, row: str, tests: str, delta: Difference | None, sign: int) -> Verdict:
    """Whether the interval of a difference is on the claim's side of 0."""
    return Verdict(claim, row, tests, judged(delta, sign), EXPECTED[sign], str(delta or DASH))


def of_selection(points: Selected) -> list[Verdict]:
    """Test the claim of table 4 of SPARO's paper: the half of the slots that recognise best beats all slots
    together."""
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


def of_masks(results: Mapping[MaskRow, Masked], model: str, other: str, task: str) -> list[Verdict]:
    """Claims of table 5: masks trained on one task, and what they change of all others."""
    slots, numbers, theirs = (
        MaskRow(*place, task) for place in ((model, "slots"), (model, "numbers"), (other, "slots"))
    )

    def measured(claim: str, row: str, first: MaskRow) -> Verdict:
        sides = [results.get(place) for place in (first, slots)]
        return of_mask_pair(claim, row, task, sides)

    return [
        measured(
            f"A mask of slots, trained on {task}, harms other tasks less than one of single numbers (table 5, in % of "
            "ImageNet for each % gained: −0.3 against −2.3); over all other tasks",
            *(f"{title_of(model)}, a weight for each slot − for each number", numbers),
        ),
        measured(
            "... and less than one of equal parts of CLIP's vector with average pooling (table 5: −0.3 against −3.9)",
            *(f"{title_of(model)} − {title_of(other)}, a weight for each slot", theirs),
        ),
    ]


def of_mask_pair(claim: str, row: str, task: str, sides: Sequence[Masked | None]) -> Verdict:
    """A claim on the second of two masks, in points, whose interval decides, and beside that in the paper's measure: a
    claim that only one of both confirms, or contradicts, is undecided."""
    if None in sides:
        return verdict(claim, row, DASH, None, 1)
    changes = [changes_elsewhere(mask, task) for mask in sides]
    columns = {key[1:3] for key in changes[0]}
    delta = difference(*(pooled(mask, columns) for mask in changes), "", "")
    tests = (
        f"all tests: {', '.join(dict.fromkeys(name for _, name in sorted(columns, key=lambda mask: by_task(mask[1]))))}"
    )
    found = verdict(claim, row, tests, delta, 1)
    theirs, ours = (papers_measure(mask, task) for mask in sides)
    if theirs is None or ours is None:
        return found._replace(difference=f"{found.difference}; the paper's measure: {DASH}, too little was gained")
    agrees = (ours > theirs) == (delta is not None and delta.mean > 0)
    beside = f"{found.difference}; the paper's measure, % for each % gained: {ours:+.3f} against {theirs:+.3f}"
    return found._replace(difference=beside, outcome=found.outcome if agrees else "undecided")


def of_sweeps(done: Runs, split: str, columns: Columns, swept: Mapping[str, Sequence[int]]) -> list[Verdict]:
    """Claims of figure 3: accuracy by number and width of slots."""

    def against(field: str, first: int, second: int) -> Difference | None:
        sides = [done.get(SplitRow(split, f"{field}={value}"), ()) for value in (first, second)]
        return difference(*(pooled(merged(run.points for run in runs), columns) for runs in sides), "", "")

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

"""The tables of the study of slots, from the runs that are finished."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from menagerie.models.registry import spec_of
from menagerie.studies.ablation.rows import Place
from menagerie.studies.ablation.tables import Columns, Runs, accuracy_table
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.results import finished
from menagerie.studies.slots.codes import Coding, codings
from menagerie.studies.slots.masks import Masked, mask_table, masked
from menagerie.studies.slots.masks import Place as MaskPlace
from menagerie.studies.slots.runs import MODEL, Jobs, Rows, shown, title, whole
from menagerie.studies.slots.selection import Selected, selected, selection_table


class Done(NamedTuple):
    """A study as far as it has come."""

    config: Any
    rows: Rows
    jobs: Jobs
    runs: Runs
    """Of the jobs that are finished."""
    columns: Columns

    def jobs_of(self, row: str) -> Sequence[Job]:
        """The jobs of a row, finished or not."""
        return self.jobs[Place(self.config.kind, row)]

    def runs_of(self, names: Sequence[str]) -> Runs:
        """The finished runs of some rows."""
        return {place: its for place, its in self.runs.items() if place.row in names}

    @property
    def ladder(self) -> list[str]:
        """The rows of table 6, SPARO first; none where they aren't wanted."""
        return [self.rows.base, *self.rows.ladder] if self.rows.ladder else []

    @property
    def swept(self) -> dict[str, list[int]]:
        """The values of each swept field."""
        return {name: [int(row.partition("=")[2]) for row in its] for name, its in self.rows.sweeps.items()}

    @property
    def beside(self) -> list[str]:
        """The models beside SPARO, as reports call them."""
        return [title(model) for model in self.config.models if model != MODEL]

    @property
    def slots(self) -> int:
        """How many slots SPARO has as it is."""
        return self._options.slots

    @property
    def width(self) -> int:
        """How wide each slot of SPARO is as it is."""
        return self._options.dim

    @property
    def _options(self) -> Any:
        return spec_of(MODEL).configured(self.jobs_of(self.rows.base)[0].cell.options)

    def parameters(self) -> dict[str, int]:
        """The parameters of each row that has a finished run."""
        first = {place.row: its[0] for place, all_of in self.jobs.items() if (its := whole(all_of))}
        return {row: finished(job.folder)["parameters"] for row, job in first.items()}


def selections(done: Done) -> Selected:
    """The points of table 4; none where it isn't wanted, or no run is finished."""
    if "selection" not in done.config.parts:
        return {}
    coded = codings(done.jobs_of(done.rows.base))
    in_slots = {seed: Coding(*(its.in_parts(done.slots) for its in coding)) for seed, coding in coded.items()}
    return selected(in_slots, done.config.random_halves)


def trained_masks(done: Done) -> dict[MaskPlace, Masked]:
    """The masks of table 5, of all models that have finished; none where it isn't wanted."""
    if "masks" not in done.config.parts:
        return {}
    names = {model: done.rows.base if model == MODEL else title(model) for model in done.config.models}
    coded = {model: codings(done.jobs_of(name)) for model, name in names.items()}
    return masked({model: its for model, its in coded.items() if its}, done.slots, done.config.mask_tasks)


def tables_of(done: Done, points: Selected, masks: Mapping[MaskPlace, Masked]) -> dict[str, pd.DataFrame]:
    """The tables that there are runs for, by name."""
    tables = {}
    if points:
        tables["selection"] = selection_table(points)
    if masks:
        tables["masks"] = mask_table(masks, {model: title(model) for model in done.config.models})
    if done.ladder:
        tables["ladder"] = rows_table(done, done.ladder)
    if any(done.swept.values()):
        swept = [row for its in done.rows.sweeps.values() for row in its]
        tables["sweeps"] = rows_table(done, [done.rows.base, *swept, *done.beside])
    return tables


def rows_table(done: Done, names: Sequence[str]) -> pd.DataFrame:
    """A row for each of some rows: parameters, accuracies, and how the first of these differs from SPARO's."""
    table = accuracy_table(done.runs_of(names), done.config.kind, done.columns, done.rows.base, None)
    counts = done.parameters()
    table.insert(1, "parameters", [f"{counts[name]:,}" if name in counts else "" for name in table[""]])
    return table.assign(**{"": table[""].map(shown)}).rename(columns={"": "row"})

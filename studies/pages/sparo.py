"""The page of the study of slots: claims of SPARO's paper, and a table or a figure for each part that is asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from menagerie.envs.core.files import write_text
from menagerie.studies.analysis.ablation_rows import explain_rows
from menagerie.studies.analysis.papers import ablations_of
from menagerie.studies.analysis.words import one_line
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import (
    Columns,
    Verdict,
    claims_section,
    column_name,
    differences_above,
    estimates_above,
    make_verdict,
    missing_row_sign,
    outcomes_sentence,
    table_columns,
    tests_in_words,
    write_scores,
)
from menagerie.studies.frame.layout import latex_of
from menagerie.studies.frame.measure import Measure
from menagerie.studies.frame.parts import Bars, Curves, Facts, Heading, Lines, Paragraph, Part, Rows, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.embeddings import Selection, selection_points, selection_table, selection_verdicts
from menagerie.studies.measures.masks import MaskRow, Masks, mask_table, mask_verdicts, masks_in
from menagerie.studies.measures.slot_pictures import SlotPictures

TITLES = {
    "selection": "Slots chosen after the fact",
    "masks": "Masks trained on one task",
    "ladder": "From attentional pooling to SPARO",
    "sweeps": "Number and width of slots",
}
SAYS = {
    "about": """SPARO (Vani et al. 2024) reads images and texts into slots: each slot is a part of a vector, and attends
    to
patches or words by itself; the score of an image and a text is the mean of their slots' cosines. This page has its
tables 4 to 6 and figures 3 and 4, on our tests. Every choice is made on validation. DINO with SPARO is left out,
because nothing here trains on images without texts.""",
    "claims": """Differences are in percentage points of accuracy: what a claim is about minus what it is compared with;
    for
numbers and widths of slots the later minus the earlier. Expected is the sign that the claim predicts. In brackets the
interval. Row names what is measured, as in the tables below. The paper's numbers are of other data and other tasks.""",
    "ladder": """From attentional pooling to SPARO (table 6): accuracy in percent, mean and deviation over seeds.""",
    "rungs": """Accuracy of each row with its interval, a panel for each test; pale dots are seeds. Dashed line: SPARO
as it is. Dotted line, where in sight: chance.""",
    "sweeps": """Number and width of slots (figure 3): accuracy in percent, mean and deviation over seeds.""",
    "slots": """At the top the images, and below a line for each of the first slots: over the image in grey the
attention to each patch, as a multiple of the mean; below it the attention to each word of the caption. Where a slot
attends doesn't say what it reads there.""",
    "training": """A line for each finished run, or, if there are many, for each row's mean over seeds; a column for
    each table.
Lines that coincide alternate as dashes. In the single-object phase, if there is one, the loss is that of scenes of one
animal, which is lower. Rows with different losses can't be compared. Validation: accuracy on at most 200 swaps, always
the same ones. All numbers: `cells/*/training.csv`.""",
}
SAYS = {name: one_line(text) for name, text in SAYS.items()}


@dataclass(frozen=True)
class SlotPage:
    """The page of a study, from the runs that are finished."""

    study: Any
    """A `SlotStudy`. It isn't named as the type, because its file imports this one."""
    records: Records

    @cached_property
    def columns(self) -> Columns:
        """Subset and task of each column of the tables."""
        return table_columns(self.records.arms[0].cell.data)

    @cached_property
    def shown(self) -> Records:
        return self.records.where(test=tuple(self.columns))

    @property
    def unchanged(self) -> str:
        return str(self.study.unchanged)

    @property
    def beside(self) -> list[str]:
        """The rows of the models beside SPARO."""
        return [title_of(model) for model in self.study.models if model != self.study.spec.name]

    def rows_of(self, kind: type[Measure], row: str) -> pd.DataFrame:
        """Return the rows of the measure of this class, for the finished runs of a row."""
        records = self.records.where(row=row)
        measure = next(its for its in self.study.measurements(records.arms[0]) if isinstance(its, kind))
        return records.rows_of(measure)

    @cached_property
    def selections(self) -> pd.DataFrame | None:
        """The items of table 4; None if the study hasn't that part."""
        wanted = "selection" in self.study.parts
        return selection_points(self.rows_of(Selection, self.unchanged)) if wanted else None

    @cached_property
    def masks(self) -> dict[MaskRow, pd.DataFrame] | None:
        """The masks of table 5, of all models that have finished; None if the study hasn't that part."""
        if "masks" not in self.study.parts:
            return None
        names = {
            model: self.unchanged if model == self.study.spec.name else title_of(model) for model in self.study.models
        }
        found = (masks_in(model, self.rows_of(Masks, row), self.study.mask_tasks) for model, row in names.items())
        return {place: items for masks in found for place, items in masks.items()}

    def verdicts(self) -> list[Verdict]:
        """Return the verdicts on the claims of all parts of the study."""
        found = [] if self.selections is None else list(selection_verdicts(self.selections))
        found += [] if self.masks is None else mask_verdicts(self.masks, self.study.mask_tasks[0])
        for claim in ablations_of(self.study.spec).claims if self.study.ladder else ():
            if claim.split == self.study.kind:
                delta = estimates_above(self.records, claim.columns, self.unchanged).get(claim.row)
                names, sign = tests_in_words(claim.columns), missing_row_sign(self.records, claim.row, self.unchanged)
                found.append(make_verdict(claim.text, claim.row, names, delta, claim.sign, sign))
        return [*found, *self.sweep_verdicts()]

    def shown_as(self, row: str) -> str:
        """Return a row's name in reports: "dim=4" becomes a width of slots."""
        field, given, value = row.partition("=")
        return f"{self.study.swept[field]}: {value}" if given and field in self.study.swept else row

    def sweep_verdicts(self) -> Iterator[Verdict]:
        """Yield verdicts on the claims of figure 3, on accuracy by number and width of slots."""
        counts, widths = (sorted(self.study.sweeps.get(name, ())) for name in self.study.swept)
        if len(counts) > 1:
            yield self.sweep_verdict("Accuracy rises with the number of slots", "slots", counts[0], counts[-1], 1)
        if len(widths) > 2:
            middle = widths[len(widths) // 2]
            yield self.sweep_verdict("Accuracy rises with the width of slots", "dim", widths[0], middle, 1)
            yield self.sweep_verdict("... and falls again", "dim", middle, widths[-1], -1)

    def sweep_verdict(self, claim: str, field: str, first: int, second: int, sign: int) -> Verdict:
        """Return the verdict on a claim about two values of a swept field."""
        delta = estimates_above(self.records, self.columns, f"{field}={first}").get(f"{field}={second}")
        row = f"{self.study.swept[field]}: {second} − {first}"
        return make_verdict(f"{claim}, {first} to {second} (figure 3)", row, tests_in_words(self.columns), delta, sign)

    def tables(self) -> dict[str, Rows | Table]:
        study, tables = self.study, {}
        if self.selections is not None and len(self.selections):
            tables["selection"] = selection_table(self.selections)
        if self.masks:
            tables["masks"] = mask_table(self.masks)
        if study.ladder:
            tables["ladder"] = self.rows_table("ladder", [self.unchanged, *study.ladder])
        if any(study.sweeps.values()):
            swept = [f"{name}={value}" for name, values in study.sweeps.items() for value in values]
            tables["sweeps"] = self.rows_table("sweeps", [self.unchanged, *swept, *self.beside])
        return tables

    def rows_table(self, name: str, rows: Sequence[str]) -> Table:
        """Return a table of some rows: accuracies, the first column's difference from SPARO's, and parameters."""
        first, base = column_name(*self.columns[0]), self.unchanged
        counts = {(arm.labels["row"],): f"{result['parameters']:,}" for arm, result in self.records.results}
        gaps = differences_above(self.records, rows, self.columns, base)
        return Table(
            *(name, self.shown.where(row=tuple(rows)), ("row",), ("subset", "task")),
            beside={f"{first}, difference": gaps, "parameters": counts},
            words={"row": {row: self.shown_as(row) for row in rows}},
            says=f"{SAYS[name]} Difference: percentage points above {base}, with the interval.",
        )

    def parts(self) -> Iterator[Part]:
        study, tables, verdicts = self.study, self.tables(), self.verdicts()
        if verdicts:
            yield Sentence(outcomes_sentence(verdicts))
        yield from self.figures()
        yield Paragraph(SAYS["about"])
        yield from claims_section(verdicts, "difference, points", SAYS["claims"])
        for name, table in tables.items():
            yield Heading(TITLES[name])
            if name == "ladder" and (says := explain_rows(self.study.spec, [self.unchanged, *study.ladder])):
                yield Facts(says)
            yield table
        base = self.records.where(row=self.unchanged)
        if base.results and "pictures" in study.parts:
            arm, _ = base.results[0]
            yield Heading("What slots attend to")
            yield SlotPictures("slots", arm.cell, base.folder(arm), arm.file, says=SAYS["slots"], scenes=study.scenes)
        yield Curves("training", self.trained, ("row",), panels="table", says=SAYS["training"])

    def figures(self) -> Iterator[Part]:
        """Yield figures of accuracy by number and width of slots, by parameters, and of each row of table 6."""
        panels, study = ("subset", "task"), self.study
        beside = self.shown.where(row=tuple(self.beside)) if self.beside else None
        for field, values in study.sweeps.items():
            swept = self.shown.where(lambda arm, field=field: field in arm.labels)
            if values and swept.results:
                says = f"Accuracy by {self.study.swept[field]} (`--sparo.{field}`). Dashed lines: the other models."
                yield Lines(f"sweep-{field}", swept, x=field, panels=panels, log=True, beside=beside, says=says)
                says = f"The same by the number of parameters, which grows with the {study.swept[field]}."
                yield Lines(f"parameters-{field}", swept, x=field, at="parameters", panels=panels, log=True, says=says)
        rungs = self.shown.where(row=(self.unchanged, *study.ladder))
        if study.ladder and rungs.results:
            base = rungs.where(row=self.unchanged)
            yield Bars("rungs", rungs, ("row",), panels=panels, dots=True, beside=base, says=SAYS["rungs"])

    @property
    def trained(self) -> Records:
        """The runs in the figure of training, each once, with their rows named as in reports."""
        once = {arm.id: arm for arm in reversed(self.records.arms)}
        arms = [arm for arm in self.records.arms if once[arm.id] is arm]
        words = (arm._replace(labels=arm.labels | {"row": self.shown_as(arm.labels["row"])}) for arm in arms)
        return replace(self.records, arms=tuple(words))

    def export(self) -> None:
        """Write all accuracies of all runs, and all tables in one file."""
        write_scores("accuracies.csv", self.records)
        if self.records.results:
            write_text(self.records.out / "tables.tex", "\n".join(map(latex_of, self.tables().values())))

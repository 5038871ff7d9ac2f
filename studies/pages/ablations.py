"""The page of an ablation study, with claims and the rows of each split; `ablations.csv` and `ablations.tex`."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from math import nan
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from menagerie.envs.core.files import write_text
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.studies.analysis.ablation_rows import base_row, explain_rows, model_in_line, parse_line
from menagerie.studies.analysis.papers import ablations_of
from menagerie.studies.analysis.tables import number_text
from menagerie.studies.analysis.words import explain_model, one_line
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.claims import (
    Columns,
    Verdict,
    claims_section,
    column_name,
    differences_above,
    estimates_above,
    judge_difference,
    lowest_by_task,
    make_verdict,
    missing_row_sign,
    outcomes_sentence,
    table_columns,
    tests_in_words,
    write_scores,
)
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.layout import latex_of
from menagerie.studies.frame.parts import Bars, Curves, Facts, Heading, HeatMap, Paragraph, Part, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.runs.cell import CHECKPOINT
from menagerie.studies.runs.data import CellData

DIFFERENCES = """Differences are percentage points above {base} on the same records; below 0 a row is lower. A row whose
tests show other scenes is compared with the mean over the same animals. Expected is the sign that the claim predicts.
In brackets the interval. Some claims pool tests of recognition, replace texture, with swaps, as their column says."""
TRAINED = """A line for each finished run, or, if there are many, for each row's mean over seeds; a colour for each row,
a column for each split. Rows with the same seed see the same images in the same order, so that lines may coincide;
there they alternate as dashes. The loss of a row that lacks a term is lower for that alone: losses of different rows
can't be compared. Validation: accuracy on at most 200 swaps, always the same ones. All numbers:
`cells/*/training.csv`."""


def sections_of(study: Any, records: Records) -> "dict[str, Section]":
    return {split: Section(study, split, records) for split in dict.fromkeys(arm.labels["split"] for arm in study.arms)}


def parts(study: Any, records: Records) -> Iterator[Part]:
    sections, base = sections_of(study, records), base_row(study.spec)
    verdicts = [its for section in sections.values() for its in section.verdicts()]
    if verdicts:
        yield Sentence(outcomes_sentence(verdicts))
    yield from (Sentence(text) for section in sections.values() if (text := section.finding()))
    first = next(section for section in sections.values() if section.records.results)
    yield first.bars()
    about = f"{explain_model(study.spec.name)}. Each row is {base} with one change"
    yield Paragraph(
        f"{about}, trained on {training_data_in_words({its.split: its.data for its in sections.values()})}."
    )
    yield from claims_section(verdicts, f"points above {base}", one_line(DIFFERENCES.format(base=base)))
    rows = [arm.labels["row"] for arm in study.arms] + [claim.row for claim in ablations_of(study.spec).claims]
    if says := explain_rows(study.spec, rows):
        yield Heading("What is changed")
        yield Facts(says)
    for section in sections.values():
        yield from section.parts(with_bars=section is not first)
    yield Curves("training", records, ("row",), panels="split", says=one_line(TRAINED))


def training_data_in_words(data: Mapping[str, CellData]) -> str:
    """Say what the first row of each split is trained on: the hardest cell of the grids, or the user's own split."""
    if "own" in data:
        return "your own split"
    shares = sorted({source.axes["pairs"] for source in data.values()})
    pairs, grids = " and ".join(f"{share:.0%}" for share in shares), " or the ".join(data)
    return f"the hardest cell of the {grids} grid, with {pairs} of the animal pairs, none of them swapped too"


@dataclass(frozen=True)
class Section:
    """The rows of one split."""

    study: Any
    """An `AblationStudy`. It isn't named as the type, because its file imports this one."""
    split: str
    every: Records
    """The records of all splits."""

    @cached_property
    def base(self) -> str:
        """The name of the unchanged model's row."""
        return base_row(self.study.spec)

    @cached_property
    def arms(self) -> list[Arm]:
        """The planned runs; some of them may not be trained yet because they wait for others."""
        return [arm for arm in self.study.arms if arm.labels["split"] == self.split]

    @property
    def data(self) -> CellData:
        """The data of the section's first row; other rows may have further tests."""
        return self.arms[0].cell.data

    @cached_property
    def records(self) -> Records:
        return self.every.where(split=self.split)

    @cached_property
    def columns(self) -> Columns:
        return table_columns(self.data)

    @cached_property
    def shown(self) -> Records:
        return self.records.where(test=tuple(self.columns))

    @cached_property
    def differences(self) -> dict[str, Estimate]:
        """Each row's difference from the unchanged model in the first column."""
        return estimates_above(self.records, self.columns[:1], self.base)

    def missing(self, row: str) -> str:
        """Return the mark of a row without a difference."""
        return missing_row_sign(replace(self.records, arms=tuple(self.arms)), row, self.base)

    def verdicts(self) -> list[Verdict]:
        """Return the verdicts on the paper's claims about this split."""
        return [
            make_verdict(
                *(claim.text, claim.row, f"{self.split}: {tests_in_words(claim.columns)}"),
                *(
                    estimates_above(self.records, claim.columns, self.base).get(claim.row),
                    claim.sign,
                    self.missing(claim.row),
                ),
            )
            for claim in ablations_of(self.study.spec).claims
            if claim.split == self.split
        ]

    def finding(self) -> str:
        """Say how many rows differ from the unchanged model, and which is the lowest; empty before any is known."""
        if not self.differences:
            return ""
        lower, higher = (
            sum(judge_difference(its, sign) == "confirmed" for its in self.differences.values()) for sign in (-1, 1)
        )
        row, delta = min(self.differences.items(), key=lambda pair: pair[1].value)
        return (
            f"On the {self.split} split's {column_name(*self.columns[0])} {lower} of {len(self.differences)} rows are "
            f"lower than {self.base} by more than chance and {higher} higher; the lowest is {row}, {delta} points."
        )

    def bars(self) -> Bars:
        """Return a figure of every row's accuracy, with a pale dot for each seed."""
        says = (
            f"The {self.split} split: accuracy of each row, a panel for each test, with its interval; pale dots are "
            f"seeds. Dashed line: {self.base} as it is. Dotted line, where in sight: chance."
        )
        panels = ("subset", "task")
        beside = self.shown.where(row=self.base)
        return Bars(self.split, self.shown, ("row",), panels=panels, dots=True, beside=beside, says=says)

    def parts(self, with_bars: bool) -> Iterator[Part]:
        """Yield all parts of the split's section. Its bars are left out if they are shown elsewhere."""
        kind = self.data.kind
        yield Heading(f"The {self.split} split", f"The false caption of the task `swap`: {KINDS[kind].swap_words}.")
        if not self.records.results:
            yield Paragraph("No run is finished yet.")
            return
        if with_bars:
            yield self.bars()
        yield self.table()
        for up, across in ablations_of(self.study.spec).planes:
            if (plane := self.plane(up, across)) is not None:
                yield plane
        yield lowest_by_task(f"tasks-{self.split}", self.records, dict.fromkeys(arm.labels["row"] for arm in self.arms))
        if kind == "binding" and ablations_of(self.study.spec).relational:
            yield Paragraph("Rows whose change matters only for captions with relations aren't trained on this split.")

    def table(self) -> Table:
        """Return the table of accuracies, of differences from the unchanged model, and of a ratio of weights."""
        ablations, rows = ablations_of(self.study.spec), dict.fromkeys(arm.labels["row"] for arm in self.arms)
        first = column_name(*self.columns[0])
        every = replace(self.records, arms=tuple(self.arms))
        beside = {f"{first}, difference": differences_above(every, rows, self.columns, self.base)}
        says = (
            f"Ablations, {self.split} split: accuracy in percent, mean and deviation over seeds. Difference: "
            f"percentage points above {self.base}, with the interval."
        )
        if ablations.ratio and self.data.kind == "spatial":
            beside[" / ".join(ablations.ratio)] = self.ratios(ablations.ratio)
            says += f" `{' / '.join(ablations.ratio)}`: the ratio of two weights after training. {ablations.ratio_says}"
        return Table(f"accuracy-{self.split}", self.shown, ("row",), ("subset", "task"), beside=beside, says=says)

    def ratios(self, names: tuple[str, str]) -> dict[tuple[str, ...], str]:
        """Return each row's ratio of two weights, as mean and deviation over seeds."""
        found: dict[str, list[float]] = {}
        for arm, _ in self.records.results:
            value = weight_ratio(self.records.folder(arm), names)
            found.setdefault(arm.labels["row"], []).extend([] if value is None else [value])
        spread = {row: stdev(values) if len(values) > 1 else nan for row, values in found.items()}
        return {(row,): number_text(mean(values), spread[row]) for row, values in found.items() if values}

    def plane(self, up: str, across: str) -> HeatMap | None:
        """Return a heat map of rows that change these two options alone; None unless all combinations are there."""
        spec, names = self.study.spec, (up, across)
        plain = asdict(spec.make_config(next(arm.cell.options for arm in self.arms if arm.labels["row"] == self.base)))
        varied = {
            row: parse_line(spec, line)
            for row, line in self.study.lines.items()
            if model_in_line(spec, line) == spec.name
        }
        there = {
            row: {name: values.get(name, plain[name]) for name in names}
            for row, values in varied.items()
            if set(values) <= set(names)
        }
        sides = [{place[name] for place in there.values()} for name in names]
        places = {tuple(place.values()) for place in there.values()}
        if min(map(len, sides)) < 2 or len(places) < len(sides[0]) * len(sides[1]):
            return None
        rows = ((arm, there.get(arm.labels["row"])) for arm in self.shown.arms)
        arms = tuple(arm._replace(labels=arm.labels | place) for arm, place in rows if place)
        axes = ablations_of(self.study.spec).axes
        says = "; ".join(f"`{name}` {way}: {axes[name]}" for name, way in ((up, "upwards"), (across, "across")))
        name, records = f"{self.split}-{up}-{across}", replace(self.shown, arms=arms)
        return HeatMap(name, records, x=across, y=up, panels=("subset", "task"), says=f"Varied together. {says}.")


@cache  # what is finished doesn't change, and the tables are written anew after every run
def weight_ratio(folder: Path, names: tuple[str, str]) -> float | None:
    """Return the first of two scalar weights divided by the second; None if the model in this folder lacks them."""
    from menagerie.models.checkpoint import read_weights

    found = read_weights(folder / CHECKPOINT)
    return float(found[names[0]] / found[names[1]]) if set(names) <= found.keys() else None


def export_ablations(study: Any, records: Records) -> None:
    """Write all accuracies of all runs, and the tables of all splits in one file."""
    write_scores("ablations.csv", records)
    if records.results:
        tables = [section.table() for section in sections_of(study, records).values() if section.records.results]
        write_text(records.out / "ablations.tex", "\n".join(map(latex_of, tables)))

"""The results of models trained on photographs: the table of results.csv, headlines, and the page."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from menagerie.envs.core.files import write_text
from menagerie.models.carry_over import Carried
from menagerie.studies.analysis.tables import DASH, pivot, pivot_texts, print_table, to_csv, to_latex
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.page import write_report
from menagerie.studies.frame.parts import Curves, Facts, Heading, Paragraph, Part, Sentence
from menagerie.studies.frame.records import Records, write_cells
from menagerie.studies.frame.study import AnyStudy
from menagerie.studies.real_training.cells import BENCHMARKS, NONE, TrainedOn
from menagerie.studies.real_training.photographs import GROUP, OTHERS
from menagerie.studies.report.figures import model_label
from menagerie.studies.scoring import benchmark_page
from menagerie.studies.scoring.benchmark_page import frame_rows
from menagerie.studies.scoring.benchmark_piece import PIECES
from menagerie.studies.scoring.benchmark_tables import NUMBERS, THEIRS, BenchmarkScores, count_unscored, result_numbers
from menagerie.studies.scoring.levels import (
    Levels,
    binomial,
    level_figure,
    level_of,
    level_parts,
    name_headline,
    seed_mean,
)
from menagerie.studies.scoring.study import left_out_pieces

AXES = ("model", *TrainedOn._fields)
COLUMNS = (*AXES, "seed", "benchmark", "kind", "name", *NUMBERS, "cell")
HELD_OUT = "held-out captions"
HEADLINE = "headline"
SCORES = "official scores in percent, mean and deviation over seeds"
NOT_ALL = (
    "So these numbers are no results of the benchmark: images are missing, or texts have words that a model can't read "
    "(summed over cells)."
)
HEADLINES = (
    "Measured here, except in rows marked theirs, which papers report: by the official rule of each benchmark, in "
    "percent; the mean over seeds and, if there are several, the standard deviation. `mix` is the share of rendered "
    "scenes in a batch, `start` the weights that a run began with, `parser` what made its scene graphs, in training "
    "and of benchmarks. `held-out captions`: which of up to five captions belongs to a photograph that was not "
    "trained on; nothing is selected by it."
)
LEFT_OUT = (
    "Photographs that a test shows are left out; a twentieth of the others is held out, by a hash of their names."
)
TRAINED = (
    "A line for each finished cell. Loss, learning rate and speed are means over neighbouring steps; losses of "
    "different models have different scales. Validation: accuracy on the captions of held-out photographs; the dotted "
    "line is chance. All numbers: `cells/*/training.csv`."
)


@dataclass(frozen=True)
class RealPage:
    """The results of a study's finished runs, as files and as parts of its page."""

    study: Any
    records: Records

    @cached_property
    def cells(self) -> Records:
        """The training runs."""
        return self.records.where(lambda arm: arm.trains)

    @cached_property
    def pieces(self) -> Records:
        """The runs on benchmarks."""
        return self.records.where(lambda arm: not arm.trains)

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each number of each finished cell, as fractions: on held-out photographs and on its benchmarks."""
        scores: dict[str, list[Mapping[str, Any]]] = {}
        for arm, result in self.pieces.results:
            scores.setdefault(arm.labels["cell"], []).append(result | {"benchmark": arm.cell.label})
        rows = [row for arm, result in self.cells.results for row in cell_rows(arm, result, scores.get(arm.id, ()))]
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(NUMBERS[:3], float))

    @property
    def varying(self) -> list[str]:
        """The fields that differ between cells, apart from model and seed."""
        return [name for name in AXES[1:] if self.table[name].nunique() > 1]

    @cached_property
    def headlines(self) -> pd.DataFrame:
        """A row for each model and place, a column for each headline: means over seeds and deviations, in percent.

        Rows of papers are marked as theirs. A setting that all cells share has no column.
        """
        shown = self.table[self.table.kind == HEADLINE]
        shown = shown.assign(column=shown.benchmark + (": " + shown.name.astype(str)).where(shown.name != "", ""))
        found = pivot_texts(pivot(shown, list(AXES), ["column"], "official"), deviations=True).reset_index()
        names = [name for name in found.columns if name not in AXES]
        theirs = [
            {"model": model + THEIRS, **dict.fromkeys(AXES[1:], DASH), **row}
            for model in dict.fromkeys(model for numbers in self.published.values() for model in numbers)
            if {*(row := self.their_row(model, names)).values()} != {DASH}
        ]
        found = pd.concat([found, pd.DataFrame(theirs, columns=found.columns)], ignore_index=True)
        return found.drop(columns=[name for name in AXES[1:] if shown[name].nunique() < 2])

    @cached_property
    def published(self) -> dict[str, Mapping[str, Mapping[str, float]]]:
        """The numbers in papers, by benchmark, model and name; empty for a rehearsal."""
        subjects = () if self.study.rehearse else self.study.prepared.subjects.values()
        return {subject.label: subject.published for some in subjects for subject in some}

    def their_row(self, model: str, columns: Sequence[str]) -> dict[str, str]:
        """Return a model's published results, by the columns of headlines."""
        parted = {column: column.partition(": ") for column in columns}
        found = {its: self.published.get(b, {}).get(model, {}).get(name) for its, (b, _, name) in parted.items()}
        return {column: DASH if number is None else f"{number:.1f}" for column, number in found.items()}

    def write_tables(self) -> None:
        """Write `cells.jsonl` and `results.csv` from what is finished."""
        write_cells(self.cells)
        to_csv(self.records.out / "results.csv", self.table)

    def export(self) -> None:
        """Write the headlines as `results.tex`, and tables and page of all benchmarks into a folder of their own."""
        write_text(self.records.out / "results.tex", to_latex(self.headlines, f"{SCORES[0].upper()}{SCORES[1:]}."))
        arms = tuple(arm._replace(cell=replace(arm.cell, below=PIECES)) for arm in self.pieces.arms)
        if arms:
            inner = Records(arms, self.records.out / BENCHMARKS)
            benchmark_page.write_tables(inner)
            write_report(OfCells(out=inner.out), inner)
            benchmark_page.write_latex(inner)

    def print_results(self) -> None:
        """Print what was carried over, and a row for each headline: there may be many headlines and few places."""
        for name, text in self.carried.items():
            print(f"{name}: {text}")
        table = self.headlines
        where = [name for name in table if name in AXES]
        labels = [", ".join(map(str, row)) for row in table[where].to_numpy().tolist()]
        rows = [(name, *table[name]) for name in table.columns.drop(where)]
        print_table(["benchmark", *labels], rows, SCORES)

    def parts(self) -> Iterator[Part]:
        """Yield the page: the best models, headlines, training data, carried over weights, and training curves."""
        if self.study.rehearse:
            text = "A rehearsal: rendered scenes in the files of COCO's format take the place of photographs."
            yield Sentence(text)
        yield from level_parts(self.levels)
        for title, says, facts in (
            ("Left out", "", left_out_pieces(self.records)),
            ("Not all records were scored", NOT_ALL, count_unscored(self.table)),
        ):
            if facts:
                yield Heading(title, says)
                yield Facts(facts)
        yield Heading("Benchmarks")
        same = [f"{name} {self.table[name].iloc[0]}" for name in AXES[1:] if self.table[name].nunique() == 1]
        yield frame_rows("headlines", self.headlines, HEADLINES + (f" In all rows: {', '.join(same)}." if same else ""))
        if self.pieces.arms:
            text = f"Every group of records, ties, and what is most surely wrong: `{BENCHMARKS}/report.html`."
            yield Paragraph(text)
        yield Heading("What was trained on")
        yield frame_rows("data", self.data_table(), LEFT_OUT)
        if self.carried:
            yield Heading("What was carried over")
            yield Facts(self.carried)
        yield Heading("How they trained")
        yield Curves("training", self.cells, self.varying, chance=self.chance, says=TRAINED)

    @property
    def levels(self) -> Levels:
        """The first headline of each benchmark, by model and place, in the mean over seeds."""
        shown = self.table[(self.table.kind == HEADLINE) & self.table.official.notna()]
        known = {(label, name): its for (label, _, name), its in BenchmarkScores(self.pieces).chances.items()}
        found, chances = {}, {}
        for label, rows in shown.groupby("benchmark", sort=False):
            name = rows.name.iloc[0]
            for (model, *where), seeds in rows[rows.name == name].groupby(["model", *self.varying], sort=False):
                row = ", ".join([model_label(model), *map(" ".join, zip(self.varying, map(str, where), strict=True))])
                found[name_headline(label, name), row] = seed_mean([level_of(its) for its in seeds.to_dict("records")])
            chances[name_headline(label, name)] = self.chance if label == HELD_OUT else known.get((label, name))
        return level_figure(found, {panel: its for panel, its in chances.items() if its is not None})

    @property
    def chance(self) -> float:
        """Chance on held-out captions."""
        fewest = min(there.numbers.held_out for there in self.study.prepared.photos.values())
        return 1 / (1 + min(OTHERS, fewest - 1))

    @cached_property
    def carried(self) -> dict[str, str]:
        """For each cell that started from trained weights, a line on how many of them were carried over."""
        results = self.cells.results
        return {arm.cell.name: Carried.from_record(its["carried"]).text for arm, its in results if "carried" in its}

    def data_table(self) -> pd.DataFrame:
        """Return a table of the numbers of photographs and captions, for each set of sources and parser."""
        rows = []
        for (sources, parser), there in self.study.prepared.photos.items():
            its = there.numbers
            left = ", ".join(f"{count} {reason}" for reason, count in (*its.left_out, *its.refused))
            numbers = map(str, (its.images, its.held_out, its.captions))
            rows.append([sources, parser, *numbers, left or "none", its.parsed or DASH])
        columns = ["sources", "parser", "photographs", "held out", "captions", "left out", "parsed"]
        return pd.DataFrame(rows, columns=columns)


def cell_rows(arm: Arm, result: Mapping[str, Any], scores: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a cell; `scores` are its results on benchmarks."""
    place = {name: arm.place.get(name, NONE) for name in AXES} | {"seed": arm.cell.seed, "cell": arm.id}
    test = result["subsets"]["validation"][GROUP]
    held = {"official": test["official"], "neutral": test["accuracy"], "tie_rate": test["tie_rate"], "n": test["n"]}
    held |= binomial(test["official"], test["n"])
    yield place | {"benchmark": HELD_OUT, "kind": HEADLINE, "name": ""} | held
    for one in scores:
        for kind, name, values in result_numbers(one):
            yield place | {"benchmark": one["benchmark"], "kind": kind, "name": name} | values


@dataclass(frozen=True)
class OfCells(AnyStudy):
    """Transfer to photographs"""

    called = "pieces"

    def plan(self, known: KnownResults) -> Iterable[Arm]:
        """No arms: the page shows those of the study that trained the cells."""
        return ()

    def page(self, records: Records) -> Iterator[Part]:
        return benchmark_page.parts(records)

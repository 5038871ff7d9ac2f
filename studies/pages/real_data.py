"""What models that were trained on photographs do on benchmarks: the table of results.csv, headlines, and the page."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from menagerie.envs.core.figures import short
from menagerie.envs.core.files import write_text
from menagerie.models.carry_over import Carried
from menagerie.studies.analysis.tables import DASH, described, pivot, print_table, to_csv, to_latex, to_rows
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.page import write_report
from menagerie.studies.frame.parts import Curves, Facts, Heading, Paragraph, Part, Rows, Sentence
from menagerie.studies.frame.records import Records, write_cells
from menagerie.studies.real_training.benchmarks import FOLDER, as_kind, is_piece
from menagerie.studies.real_training.cells import NONE, Photos, TrainedOn
from menagerie.studies.real_training.photographs import GROUP, OTHERS
from menagerie.studies.scoring.benchmark_piece import BenchmarkPiece
from menagerie.studies.scoring.benchmark_tables import lacking, measured
from menagerie.studies.scoring.papers import THEIRS
from menagerie.studies.scoring.study import BenchmarkStudy, left_out

Published = Mapping[str, Mapping[str, float]]  # by model and name
AXES = ("model", *TrainedOn._fields)
NUMBERS = ("official", "neutral", "tie_rate", "n", "missing", "unread")
COLUMNS = (*AXES, "seed", "benchmark", "kind", "name", *NUMBERS, "cell")
HELD_OUT = "held-out captions"
HEADLINE = "headline"
SCORES = "official scores in percent, mean and deviation over seeds"
MOST_SAID = 6  # headlines of which a sentence says which model is best
NOT_ALL = (
    "So these figures are no results of the benchmark: images are missing, or texts have words that a model can't read "
    "(summed over cells)."
)
HEADLINES = (
    "Measured here unless a row is marked theirs, a figure of a paper: by the rule of each benchmark that papers "
    "report, in percent, the mean over seeds and, of several, the standard deviation. `mix` is the share of rendered "
    "scenes in a batch, `start` the weights that a run began with, `parser` what made its scene graphs, in training "
    "and of benchmarks. `held-out captions`: which of up to five captions is the one of a photograph that was not "
    "trained on; it selects nothing."
)
LEFT_OUT = (
    "Photographs are left out where a test shows them; of the others a twentieth is held out, by a hash of their names."
)
TRAINED = (
    "A line per finished cell. Loss, learning rate and speed are means of neighbouring steps; each model's loss has a "
    "scale of its own. Validation: accuracy on the captions of held-out photographs; the dotted line is chance. All "
    "numbers: `cells/*/training.csv`."
)


def table_of(records: Records) -> pd.DataFrame:
    """A row for each number of each finished cell, as fractions: on held-out photographs, and of its benchmarks."""
    scores: dict[str, list[Mapping[str, Any]]] = {}
    for arm, result in records.results:
        if is_piece(arm):
            scores.setdefault(arm.labels["cell"], []).append(result | {"benchmark": arm.cell.label})
    rows = [row for arm, result in records.results if not is_piece(arm) for row in rows_of(arm, result, scores)]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(NUMBERS[:3], float))


def rows_of(
    arm: Arm, result: Mapping[str, Any], scores: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """The rows of a cell."""
    place = {name: arm.place.get(name, NONE) for name in AXES} | {"seed": arm.cell.seed, "cell": arm.id}
    test = result["subsets"]["validation"][GROUP]
    held = {"official": test["official"], "neutral": test["accuracy"], "tie_rate": test["tie_rate"], "n": test["n"]}
    yield place | {"benchmark": HELD_OUT, "kind": HEADLINE, "name": ""} | held
    for one in scores.get(arm.id, ()):
        for kind, name, values in measured(one):
            yield place | {"benchmark": one["benchmark"], "kind": kind, "name": name} | values


def headlines(table: pd.DataFrame, published: Mapping[str, Published]) -> pd.DataFrame:
    """A row for each model and place with means over seeds and deviations, in percent, a column for each headline.

    Rows of papers are marked as theirs. Columns that say where are left out where they say the same in all rows.
    """
    shown = table[table.kind == HEADLINE]
    shown = shown.assign(column=shown.benchmark + (": " + shown.name.astype(str)).where(shown.name != "", ""))
    found = described(pivot(shown, list(AXES), ["column"], "official"), deviations=True).reset_index()
    names = [name for name in found.columns if name not in AXES]
    theirs = [
        {"model": model + THEIRS, **{name: DASH for name in AXES[1:]}, **row}
        for model in dict.fromkeys(model for numbers in published.values() for model in numbers)
        if set((row := row_of(model, names, published)).values()) != {DASH}
    ]
    found = pd.concat([found, pd.DataFrame(theirs, columns=found.columns)], ignore_index=True)
    return found.drop(columns=[name for name in AXES[1:] if shown[name].nunique() < 2])


def row_of(model: str, columns: Sequence[str], published: Mapping[str, Published]) -> dict[str, str]:
    """A model's published results, by the columns of headlines."""
    row = {}
    for column in columns:
        benchmark, _, name = column.partition(": ")
        number = published.get(benchmark, {}).get(model, {}).get(name)
        row[column] = DASH if number is None else f"{number:.1f}"
    return row


def published(study: Any) -> dict[str, Published]:
    """The numbers that papers report, by benchmark; none for a rehearsal, whose files only have the benchmarks'
    names."""
    tested = [] if study.rehearse else [subject for some in study.prepared.subjects.values() for subject in some]
    return {subject.label: subject.published for subject in tested}


def write_tables(records: Records) -> None:
    """Write `cells.jsonl` and `results.csv` from what is finished."""
    write_cells(records.where(lambda arm: not is_piece(arm)))
    to_csv(records.out / "results.csv", table_of(records))


def write_latex(study: Any, records: Records) -> None:
    """Write the headlines as `results.tex`."""
    found = headlines(table_of(records), published(study))
    write_text(records.out / "results.tex", to_latex(found, f"{SCORES[0].upper()}{SCORES[1:]}."))


def print_results(study: Any, records: Records) -> None:
    """What was carried over, and the headlines on the terminal, a row each: places may be few and headlines many."""
    for name, text in carried(records.where(lambda arm: not is_piece(arm))).items():
        print(f"{name}: {text}")
    table = headlines(table_of(records), published(study))
    where = [name for name in table if name in AXES]
    labels = [", ".join(map(str, row)) for row in table[where].to_numpy().tolist()]
    rows = [(name, *table[name]) for name in table.columns.drop(where)]
    print_table(["benchmark", *labels], rows, SCORES)


def parts(study: Any, records: Records) -> Iterator[Part]:
    """The page: who is best, headlines, what was trained on, what was carried over, how all trained."""
    cells, table = records.where(lambda arm: not is_piece(arm)), table_of(records)
    if study.rehearse:
        yield Sentence("A rehearsal: rendered scenes in the files of COCO's format take the place of photographs.")
    yield from map(Sentence, best(table))
    if gone := left_out(records):
        yield Heading("Left out")
        yield Facts(gone)
    if few := lacking(table):
        yield Heading("Not all records were scored", NOT_ALL)
        yield Facts(few)
    yield Heading("Benchmarks")
    yield rows_part("headlines", headlines(table, published(study)), HEADLINES + same_in(table))
    if any(map(is_piece, records.arms)):
        text = f"Every group of records, ties, and what is most surely wrong: `{FOLDER}/report.html`."
        yield Paragraph(text)
    yield Heading("What was trained on")
    yield rows_part("data", data_table(study.prepared.photos), LEFT_OUT)
    if lines := carried(cells):
        yield Heading("What was carried over")
        yield Facts(lines)
    yield Heading("How they trained")
    yield Curves("training", cells, varying(table), chance=guess(study.prepared.photos), says=TRAINED)


def rows_part(name: str, frame: pd.DataFrame, says: str) -> Rows:
    """A frame of texts as a part."""
    header, *rows = to_rows(frame)
    return Rows(name, header, rows, says=says)


def best(table: pd.DataFrame) -> Iterator[str]:
    """Which model, and where, is best by each of the first headlines, in the mean over seeds."""
    shown, places = table[(table.kind == HEADLINE) & table.official.notna()], varying(table)
    for (label, name), rows in list(shown.groupby(["benchmark", "name"], sort=False))[:MOST_SAID]:
        means = rows.groupby(["model", *places], sort=False)["official"].mean().reset_index()
        top = means[means.official == means.official.max()]
        rows = top.to_dict("records")
        where = [", ".join([short(row["model"]), *(f"{axis} {row[axis]}" for axis in places)]) for row in rows]
        of = f" best of {len(means)}" if len(means) > 1 else ""
        title = f"{label}: {name}" if name else label
        yield f"{title}:{of} {100 * top.official.iloc[0]:.1f} %, {' and '.join(where)}."


def varying(table: pd.DataFrame) -> list[str]:
    """What differs between cells, beside model and seed."""
    return [name for name in AXES[1:] if table[name].nunique() > 1]


def same_in(table: pd.DataFrame) -> str:
    """What all cells have in common, in words."""
    same = [f"{name} {table[name].iloc[0]}" for name in AXES[1:] if table[name].nunique() == 1]
    return f" In all rows: {', '.join(same)}." if same else ""


def guess(photos: Photos) -> float:
    """The accuracy of guessing on the held-out photographs."""
    return 1 / (1 + min([OTHERS, *(there.numbers.held_out - 1 for there in photos.values())]))


def carried(cells: Records) -> dict[str, str]:
    """For each cell that started from trained weights, a line on how much of them it took over."""
    return {arm.cell.name: Carried.recorded(its["carried"]).text for arm, its in cells.results if "carried" in its}


def data_table(photos: Photos) -> pd.DataFrame:
    """A table of how many photographs and captions each set of sources has with each parser."""
    rows = []
    for (sources, parser), there in photos.items():
        left = ", ".join(f"{count} {reason}" for reason, count in (*there.numbers.left_out, *there.numbers.refused))
        numbers = (there.numbers.images, there.numbers.held_out, there.numbers.captions)
        rows.append([sources, parser, *map(str, numbers), left or "none", there.numbers.parsed or DASH])
    columns = ["sources", "parser", "photographs", "held out", "captions", "left out", "parsed"]
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class OfCells(BenchmarkStudy):
    """Transfer to photographs"""

    def pieces(self) -> Iterable[BenchmarkPiece]:
        """None: those of the study of the cells are shown."""
        return ()


def write_benchmarks(records: Records) -> None:
    """Write tables and page of all pieces, into a folder of their own."""
    arms = [arm._replace(cell=as_kind(BenchmarkPiece, arm.cell)) for arm in records.arms if is_piece(arm)]
    if arms:
        inner, study = Records(tuple(arms), records.out / FOLDER), OfCells(out=records.out / FOLDER)
        study.tables(inner)
        write_report(study, inner)
        study.export(inner)

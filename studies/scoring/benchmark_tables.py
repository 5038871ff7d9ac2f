"""The numbers of models on benchmarks of photographs, also in a paper's layout, and their clearest errors.

Each column of a paper's table names our number for it. Where the paper doesn't say what a number is of, the table's
note does."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from menagerie.envs.core.files import file_names
from menagerie.envs.core.reading import read_toml
from menagerie.generators.benchmarks.benchmark import summarise
from menagerie.generators.benchmarks.matrix import MatrixBenchmark
from menagerie.generators.benchmarks.photographs import PhotographBenchmark, group_by_task
from menagerie.studies.analysis.tables import DASH, to_latex
from menagerie.studies.frame.estimate import NOTHING
from menagerie.studies.frame.parts import Heading, Part, Picture, Pictures, Rows
from menagerie.studies.frame.records import Records
from menagerie.studies.scoring.benchmark_piece import BenchmarkPiece, result_numbers
from menagerie.studies.scoring.page import named_results, short_names
from menagerie.studies.scoring.scores import Score, level_of, share_or_dash

NUMBERS = ("official", "neutral", "tie_rate", "n", "missing", "unread", "low", "high")
COLUMNS = ("model", "benchmark", "kind", "name", *NUMBERS, "piece")
THEIRS = " (theirs)"
PIXELS = 160  # of a picture
PAPERS = (
    f"The tables of the paper on OC-CLIP, in its layout: rows marked{THEIRS} are its numbers, all others were measured "
    "here by each benchmark's official rule. –: the paper has no number, or this page has none, for the reason after "
    "it. *: not of all records."
)
WRONG = (
    "Images for which a model preferred a false text, ✗, to the true one, ✓, by the widest margins, with both scores. "
    "Pictures show the middle of an image, or of the part of it that the texts are about. For an untrained model they "
    "are noise."
)


class Column(NamedTuple):
    """A column of a paper's table, and where our number for it is."""

    title: str
    benchmark: str
    name: str
    """The name of a task or of a headline."""


class PaperTable(NamedTuple):
    """A table of a paper, with its numbers in percent."""

    number: int
    title: str
    note: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]


OC_CLIP = read_toml(Path(__file__).with_name("oc_clip_tables.toml"))
TABLES = [PaperTable(**given | {"columns": [Column(*its) for its in given["columns"]]}) for given in OC_CLIP["tables"]]


def name_headline(benchmark: str, headline: str) -> str:
    """Return the name of a headline; over all records it is just the benchmark's name."""
    return benchmark if headline in ("", "all") else f"{benchmark}, {headline}"


def scores(records: Records) -> list[Score]:
    """Return the numbers of all models on all benchmarks, and those that papers report. A page draws the first headline
    of each benchmark."""
    names, found, theirs = short_names(records), [], {}
    for piece, result in named_results(records):
        chances, first = chances_in(piece.subject.bench), next(iter(result["headlines"]), None)
        for kind, name, its in result_numbers(result):
            title = name_headline(piece.label, name) if kind == "headline" else ""
            score = Score(names[piece.model], piece.label, kind, name, level_of(its), its["tie_rate"])
            drawn = bool(title) and name == first
            found.append(score._replace(chance=chances.get((kind, name)), title=title, drawn=drawn))
        theirs.update(dict.fromkeys(published_scores(piece.label, piece.subject.published, result["headlines"])))
    return [*found, *theirs]


def published_scores(
    benchmark: str, published: Mapping[str, Mapping[str, float]], there: Collection[str]
) -> Iterator[Score]:
    """Yield the numbers of a benchmark that papers report, for the headlines that are `there`."""
    for model, numbers in published.items():
        for name, value in ((name, value) for name, value in numbers.items() if name in there):
            title, its = name_headline(benchmark, name), NOTHING._replace(value=value / 100)
            yield Score(model + THEIRS, benchmark, "headline", name, its, title=title)


@lru_cache(maxsize=64)  # reports are written anew after every model
def chances_in(bench: PhotographBenchmark) -> dict[tuple[str, str], float]:
    """Return chance accuracies on one benchmark: those of equal scores, with ties broken at random."""
    if isinstance(bench, MatrixBenchmark):
        found = [its for pool in bench.pools for its in bench.tied_outcomes(pool)]
    else:
        zeros = ((item, np.zeros((len(item.images), len(item.texts)))) for item in bench.items)
        found = [(item, bench.outcome(item, scores)) for item, scores in zeros]
    items, outcomes = [item for item, _ in found], [outcome for _, outcome in found]
    tasks = {("task", name): summarise(summary) for name, summary in group_by_task(items, outcomes).items()}
    headlines = {("headline", name): summary for name, summary in bench.headlines(items, outcomes).items()}
    return {name: summary.neutral for name, summary in (tasks | headlines).items() if summary.neutral is not None}


def paper_tables(records: Records) -> list[tuple[PaperTable, pd.DataFrame]]:
    """Return the paper's tables for which a benchmark was scored: our models, chance, and then the paper's numbers."""
    found = []
    for layout in TABLES:
        if {piece.label for piece, _ in named_results(records)} & {column.benchmark for column in layout.columns}:
            benches = {arm.cell.label: arm.cell.subject.bench for arm in records.arms}
            chances = {label: {name: its for (_, name), its in chances_in(b).items()} for label, b in benches.items()}
            guessed = [share_or_dash(chances.get(its.benchmark, {}).get(its.name)) for its in layout.columns]
            theirs = [zip_longest(layout.columns, figures, fillvalue=DASH) for _, *figures in layout.rows]
            rows = [*our_rows(records, layout), ["chance", *guessed]]
            rows += [
                [row[0] + THEIRS, *(figure for _, figure in its)] for row, its in zip(layout.rows, theirs, strict=True)
            ]
            found.append((layout, pd.DataFrame(rows, columns=["model", *(its.title for its in layout.columns)])))
    return found


def our_rows(records: Records, layout: PaperTable) -> Iterator[list[str]]:
    """Yield a row for each model. In place of a missing number there is a dash with the reason."""
    arms = {(arm.cell.model, arm.cell.label): arm for arm in records.arms}
    for model, title in short_names(records).items():
        cells = []
        for column in layout.columns:
            arm = arms.get((model, column.benchmark))
            result = records.result(arm) if arm else None
            rows = [its for _, name, its in result_numbers(result) if name == column.name] if result else []
            if not rows:
                cells.append(f"{DASH} left out" if arm and records.left_out(arm) else f"{DASH} not run")
                continue
            partial = any(its["missing"] + its["unread"] for its in result["tasks"].values())
            none = rows[0]["official"] is None
            cells.append(f"{DASH} no records" if none else share_or_dash(rows[0]["official"]) + "*" * partial)
        yield [title, *cells]


def latex(records: Records) -> list[str]:
    """Return the tables of the paper in LaTeX."""
    of = f'of "{OC_CLIP["paper"]}"; rows marked{THEIRS} are its figures. Percent.'
    return [
        to_latex(frame, f"{layout.title}, laid out as table {layout.number} {of} {layout.note}")
        for layout, frame in paper_tables(records)
    ]


def parts(records: Records) -> Iterator[Part]:
    """Yield the paper's tables, and pictures of the images that models got wrong by the widest margins."""
    for layout, frame in paper_tables(records):
        name, title = f"paper-table-{layout.number}", f"Beside table {layout.number} of the paper: {layout.title}"
        yield Rows(name, list(frame), frame.to_numpy().tolist(), says=f"{PAPERS} {layout.note}", folded=title)
    found = [(piece, result["wrong"]) for piece, result in named_results(records) if result["wrong"]]
    if found:
        yield Heading("Clearest errors", WRONG)
    for (piece, wrong), file in zip(found, file_names(piece.name for piece, _ in found).values(), strict=True):
        yield Pictures(f"wrong-{file}", error_pictures(piece, wrong), folded=piece.name)


def lines(records: Records) -> Iterator[str]:
    """Yield lines on what models' training had of the benchmarks."""
    for piece in (arm.cell for arm in records.arms if arm.cell.had):
        yield f"{piece.label}: training of {piece.tested.title} had {piece.had}"


def error_pictures(piece: BenchmarkPiece, wrong: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """Return small pictures of the middle of each image, with both texts and their scores."""
    bench = piece.subject.bench.reframe(PIXELS, squashed=False, interpolation="bicubic")
    pixels = bench.images([case["image"] for case in wrong]).permute(0, 2, 3, 1).numpy()
    found = []
    for image, one in zip(pixels, wrong, strict=True):
        true, preferred = (f"{score:#.4g}" for score in one["scores"])
        texts = f"✓ {true} {one['true']}", f"✗ {preferred} {one['preferred']}"
        found.append(Picture(image, *texts, one["record"]))
    return found

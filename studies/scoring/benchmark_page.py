"""The results of models on benchmarks of photographs, as files and as parts of a page."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from menagerie.envs.core.files import file_names, write_text
from menagerie.studies.analysis.tables import print_table, to_csv, to_latex, to_rows
from menagerie.studies.frame.parts import Facts, Heading, Paragraph, Part, Picture, Pictures, Rows
from menagerie.studies.frame.records import Records
from menagerie.studies.scoring.benchmark_piece import BenchmarkPiece
from menagerie.studies.scoring.benchmark_tables import (
    THEIRS,
    BenchmarkScores,
    benchmark_table,
    count_unscored,
    headline_table,
    paper_tables,
    paper_tables_in_latex,
)
from menagerie.studies.scoring.judged import about_answers
from menagerie.studies.scoring.levels import Levels, level_figure, level_of, level_parts, name_headline
from menagerie.studies.scoring.rerank import reranked_pools
from menagerie.studies.scoring.study import about_models, left_out_pieces, named_results
from menagerie.studies.scoring.texts import unread_texts

PIXELS = 160
WHAT_IT_IS = (
    "Models scored on benchmarks of photographs; nothing was trained. Numbers are percentages by each benchmark's "
    "official rule, with the accuracy when ties are broken at random and the rate of ties, which shows a model that "
    f"gives everything the same score. All were measured here, except in rows marked{THEIRS}, which papers report."
)
NOT_ALL = (
    "Not all records were scored, so these numbers are no results of the benchmark: images are missing, or texts have "
    "words that a model can't read."
)
NOT_READ = (
    "Not all texts were read to their end. Texts that differ only in what a model doesn't read have equal scores, "
    "which count as ties."
)
NOT_PAIRED = (
    "Models that read each image together with each text scored only the candidates that another model ranked best, so "
    "these numbers depend on both models: what the other ranks too low can't be found."
)
HEADLINES = (
    "Measured here: for each benchmark the numbers that papers state, by its official rule, and in brackets n, the "
    "number of records. `micro`: over all records; `macro`: the mean over tasks that have records. Chance: the result "
    "of equal scores, with ties broken at random."
)
PAPERS = (
    f"The tables of the paper on OC-CLIP, in its layout: rows marked{THEIRS} are its numbers, all others were measured "
    "here. Models have a row by each benchmark's official rule, one with ties shared, and one with the rate of ties. "
    "–: the paper has no number. Not run, left out, no records: this page has none. *: over n of the records only."
)
HAD = (
    "Whole texts of a benchmark that are also training texts, and image files with the same bytes as a training file. "
    "No record is left out for this. A photograph that was cropped or saved again isn't found."
)
COLUMNS_SAY = (
    "`task`: the records of one task; `headline`: a number that papers state. `ties shared`: accuracy when ties are "
    "broken at random. `ties`: rate of ties. `chance`: accuracy of guessing. `n`: records scored."
)
WRONG = (
    "Images for which a model preferred a false text, ✗, to the true one, ✓, by the widest margins, with both scores. "
    "Pictures show the middle of an image, or of the part of it that the texts are about."
)
NOISE = " For an untrained model they are noise."


def parts(records: Records) -> Iterator[Part]:
    """Yield the page: headlines, the paper's tables with our rows, all numbers, and the clearest errors."""
    scored = BenchmarkScores(records)
    yield from level_parts(headline_levels(scored))
    yield Paragraph(WHAT_IT_IS)
    for parser in filter(None, dict.fromkeys(piece.subject.parser for piece in scored.pieces)):
        yield Paragraph(f"Scene graphs of texts are from the parser `{parser}`.")
    yield from gap_parts(scored)
    yield from about_answers(records)
    yield from trained_on_parts(scored)
    yield Heading("Headlines")
    yield frame_rows("headlines", headline_table(scored, counts=True), HEADLINES)
    yield from paper_parts(scored)
    yield from number_parts(scored)
    yield from error_parts(records)
    yield from about_models(records, {})


def write_tables(records: Records) -> None:
    """Write results.jsonl and results.csv from finished pieces."""
    found = named_results(records)
    lines = (json.dumps(result | ({"trained_on": piece.had} if piece.had else {})) + "\n" for piece, result in found)
    write_text(records.out / "results.jsonl", "".join(lines))
    to_csv(records.out / "results.csv", BenchmarkScores(records).table)


def write_latex(records: Records) -> None:
    """Write the headlines and the paper's tables as results.tex."""
    scored, caption = BenchmarkScores(records), f"Official scores in percent;{THEIRS} marks published ones."
    texts = to_latex(headline_table(scored), caption), paper_tables_in_latex(paper_tables(scored))
    write_text(records.out / "results.tex", "\n".join(filter(None, texts)))


def print_results(records: Records) -> None:
    """Print a row for each headline: there may be few models and many headlines."""
    table = headline_table(BenchmarkScores(records)).set_index("model").T
    rows = [(str(name), *row) for name, row in table.iterrows()]
    print_table(["benchmark", *map(str, table.columns)], rows, "official scores, %")
    for model, benchmark, had in trained_rows(BenchmarkScores(records)):
        print(f"{benchmark}: training of {model} had {had}")


def trained_rows(scored: BenchmarkScores) -> list[list[str]]:
    """Return rows of what each model's training had of each benchmark."""
    return [[scored.titles[piece.model], piece.label, piece.had] for piece in scored.pieces if piece.had]


def trained_on_parts(scored: BenchmarkScores) -> Iterator[Part]:
    """Yield the table of what training had of the benchmarks, if this was measured."""
    if rows := trained_rows(scored):
        yield Heading("What training had of the benchmarks")
        yield Rows("trained-on", ("model", "benchmark", "its training had"), rows, says=HAD)


def headline_levels(scored: BenchmarkScores) -> Levels:
    """Return the figure of each benchmark's first headline."""
    found, chances = {}, {}
    for label, rows in scored.table[scored.table.kind == "headline"].groupby("benchmark", sort=False):
        name = rows.name.iloc[0]
        for row in rows[(rows.name == name) & rows.official.notna()].to_dict("records"):
            found[name_headline(label, name), scored.titles[row["model"]]] = level_of(row)
        if (chance := scored.chances.get((label, "headline", name))) is not None:
            chances[name_headline(label, name)] = chance
    return level_figure(found, chances)


def frame_rows(name: str, frame: pd.DataFrame, says: str) -> Rows:
    header, *rows = to_rows(frame)
    return Rows(name, header, rows, says=says)


def gap_parts(scored: BenchmarkScores) -> Iterator[Part]:
    """Yield sections on what wasn't scored, and on what wasn't read."""
    results = {piece.name: result for piece, result in named_results(scored.records)}
    for title, says, found in (
        ("Left out", "", left_out_pieces(scored.records)),
        ("Not all records", NOT_ALL, count_unscored(scored.table)),
        ("Not all of each text", NOT_READ, unread_texts(results)),
        ("Not all pairs", NOT_PAIRED, reranked_pools(results)),
    ):
        if found:
            yield Heading(title, says)
            yield Facts(found)


def paper_parts(scored: BenchmarkScores) -> Iterator[Part]:
    """Yield the paper's tables for which any benchmark was scored."""
    if found := paper_tables(scored):
        yield Heading("Beside the paper", PAPERS)
    for layout, frame in found:
        yield Heading(f"Table {layout.number}: {layout.title}", level=3)
        yield frame_rows(f"paper-table-{layout.number}", frame, layout.note)


def number_parts(scored: BenchmarkScores) -> Iterator[Part]:
    """Yield a table of every number of each benchmark."""
    abouts = {piece.label: piece.subject.about for piece in scored.pieces}
    for label, file in file_names(dict.fromkeys(scored.table.benchmark)).items():
        yield Heading(label)
        says = f"{abouts[label][0].upper()}{abouts[label][1:]}. {COLUMNS_SAY}"
        yield frame_rows(f"benchmark-{file}", benchmark_table(scored, label), says)


def error_parts(records: Records) -> Iterator[Part]:
    """Yield pictures of the images that models got wrong by the widest margins."""
    found = [(piece, result["wrong"]) for piece, result in named_results(records) if result["wrong"]]
    if not found:
        return
    untrained = any(piece.tested.title != piece.model for piece, _ in found)
    yield Heading("Clearest errors", WRONG + NOISE * untrained)
    files = file_names(piece.name for piece, _ in found)
    for piece, wrong in found:
        yield Pictures(f"wrong-{files[piece.name]}", error_pictures(piece, wrong), folded=piece.name)


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

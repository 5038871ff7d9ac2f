"""One model on one benchmark of photographs: each test rated under the model, scored once, kept as a finished piece."""

import csv
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.files import whole_file
from menagerie.envs.core.identity import digest
from menagerie.generators.benchmarks.benchmark import Benchmark, Result, Summary, summarise
from menagerie.generators.benchmarks.matrix import MatrixBenchmark
from menagerie.generators.benchmarks.photographs import PhotographSet, by_group
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.models.contract import attempt
from menagerie.models.evaluation.codes import Codes
from menagerie.models.evaluation.scoring import score_items, score_pool
from menagerie.models.library.loaded import LoadedScorer
from menagerie.studies.evaluation.loop import cut_record
from menagerie.studies.evaluation.models import Model
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import write_result
from menagerie.studies.transferring.texts import identity_of, parsed, parsed_by, readable

SCORES = ("record", "group", "official", "neutral", "tied", "scores")
SHOWN = 6  # records of a report that are most surely wrong


def images_of(bench: Benchmark) -> int:
    """The number of images that its tests need."""
    if isinstance(bench, MatrixBenchmark):
        return sum(len(pool.images) for pool in bench.pools)
    return len({number for item in bench.items for number in item.images})


def rated(codes: Codes, bench: PhotographSet, report: Callable[[int], None]) -> list[Result]:
    """All tests of a benchmark; `report` is called with the number of images that are encoded at once."""
    encode = partial(codes.encode, bench, report=report)
    if isinstance(bench, MatrixBenchmark):
        matrices = ((pool, score_pool(codes.scorer, pool, encode)) for pool in bench.pools if pool.pairs)
        return [result for pool, scores in matrices for result in bench.results(pool, scores)]
    scores = score_items(codes.scorer, bench, encode=encode)
    return [Result(item, matrix, bench.outcome(item, matrix)) for item, matrix in zip(bench.items, scores, strict=True)]


def groups_of(bench: PhotographSet, results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """The numbers of each group; how many of its tests were left out, for want of their images or of a word."""
    parts = by_group([result.item for result in results], [result.outcome for result in results])
    every, missing = bench.tests(), bench.untested()
    return {
        group: numbers(summarise(parts.get(group, [])))
        | {"missing": missing[group], "unread": every[group] - len(parts.get(group, []))}
        for group in bench.groups
    }


def headlines_of(bench: PhotographSet, results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """The numbers that papers report of a benchmark."""
    headlines = bench.headlines([result.item for result in results], [result.outcome for result in results])
    return {name: numbers(summary) for name, summary in headlines.items()}


def numbers(summary: Summary) -> dict[str, Any]:
    """A summary as results have it."""
    return {"official": summary.official, "neutral": summary.neutral, "tie_rate": summary.tie_rate, "n": summary.n}


def write_scores(path: Path, results: Sequence[Result]) -> None:
    """A row for each test: how it went, and the scores of its texts, an image after another."""
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(SCORES)
        writer.writerows(score_rows(results))


def score_rows(results: Sequence[Result]) -> Iterator[tuple[object, ...]]:
    for item, scores, outcome in results:
        texts = "; ".join(" ".join(f"{score:.9g}" for score in row) for row in scores)
        yield item.record, item.group, f"{outcome.official:g}", f"{outcome.neutral:.6g}", int(outcome.tied), texts


def write_texts(path: Path, bench: Benchmark) -> None:
    """A row for each item with its texts, for benchmarks whose texts were made here."""
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            (item.record, *(t.text for t in item.texts)) for item in bench.items
        )


def surely_wrong(results: Sequence[Result]) -> list[Mapping[str, Any]]:
    """The images that preferred a false text by the widest margin in tests that went wrong, each once."""
    examples = [example for result in results if result.outcome.official < 1 for example in preferences(result)]
    shown: dict[int, Mapping[str, Any]] = {}
    for example in sorted(examples, key=margin, reverse=True):
        if len(shown) < SHOWN:
            shown.setdefault(example["image"], example)
    return list(shown.values())


def preferences(result: Result) -> Iterator[Mapping[str, Any]]:
    """The images of a test that prefer a false text to their own, or have both level: both texts with their scores."""
    item, scores, _ = result
    if len(item.texts) < max(2, len(item.images)):  # texts that ask for images
        return
    for k, row in enumerate(scores):
        true_text = min(item.own(k), key=row.__getitem__)
        best = max((place for place in range(len(row)) if place not in item.own(k)), key=row.__getitem__)
        if row[best] >= row[true_text]:
            yield {
                **{
                    "image": item.images[k],
                    "record": item.record if item.record.startswith(item.group) else f"{item.group}, {item.record}",
                },
                **{"true": item.texts[true_text].text, "preferred": item.texts[best].text},
                "scores": [float(row[true_text]), float(row[best])],
            }


def margin(example: Mapping[str, Any]) -> float:
    """How much higher the preferred text scores than the true one."""
    true, preferred = example["scores"]
    return preferred - true


VERSION = 3  # of how records are scored
FILE, TEXTS = "scores.csv", "texts.csv"


@dataclass(frozen=True)
class Subject:
    """A benchmark whose files were read."""

    spec: BenchmarkSpec
    bench: PhotographSet = field(repr=False)
    records: str
    """Hash of its records and of the sizes of their images."""
    parser: CaptionParser | None = None
    """The parser of the scene graphs of its texts; None where every text is one node."""

    @property
    def label(self) -> str:
        return self.spec.name


@dataclass(frozen=True)
class Piece:
    """A model and a benchmark, and the folder of their results."""

    model: Model
    subject: Subject
    out: Path
    skip: bool
    """Whether words that a model doesn't know are left out."""
    id: str

    @property
    def folder(self) -> Path:
        """The folder of its result and its scores."""
        return self.out / "pieces" / self.id

    @property
    def name(self) -> str:
        return f"{self.model.label} on {self.subject.label}"


class Loaded(NamedTuple):
    """A model that is ready to score."""

    model: LoadedScorer
    codes: Codes


def subject_of(spec: BenchmarkSpec, bench: PhotographSet, parser: CaptionParser | None = None) -> Subject:
    """A benchmark with the identity of its content."""
    hashed = hashlib.sha256()
    for line in bench.content():
        hashed.update(f"{line}\n".encode())
    return Subject(spec, bench, hashed.hexdigest()[:16], parser)


def subjects_of(read: Sequence[tuple[BenchmarkSpec, PhotographSet]], parser: str, parses: Path) -> list[Subject]:
    """Benchmarks that were read, with the graphs of a parser, which are kept in the folder `parses`."""
    if not read:
        return []
    opened, benches = parsed([bench for _, bench in read], parser, parses)
    return [subject_of(spec, bench, opened) for (spec, _), bench in zip(read, benches, strict=True)]


def pieces_of(models: Sequence[Model], subjects: Sequence[Subject], out: Path, skip: bool) -> list[Piece]:
    contents = [
        {"benchmark": one.label, "records": one.records, **identity_of(one.bench, one.parser)} for one in subjects
    ]
    return [
        Piece(model, one, out, skip, digest({"model": model.weights, **what, "skip": skip, "version": VERSION}))
        for model in models
        for one, what in zip(subjects, contents, strict=True)
    ]


def score_piece(piece: Piece, loaded: Loaded, start: Callable[[int], Callable[[int], None]]) -> None:
    """Score all records, and write their scores and then the result.

    `start` receives the number of images and gives what is to be called with those that are encoded. Raises where the
    model can't, or where its scores are no numbers.
    """
    began = time.perf_counter()
    (model, codes), label, parser = loaded, piece.model.label, piece.subject.parser
    bench, space = piece.subject.bench.framed(*model.framing), model.scorer.texts
    words, skipped = readable(bench, space.words, space.context, piece.skip, label)
    cut = attempt(label, "fails", lambda: cut_record(model.scorer, words.texts))
    results = attempt(label, "fails", lambda: rated(codes, words, start(images_of(words))))
    write_scores(piece.folder / FILE, results)
    if bench.made_texts:
        write_texts(piece.folder / TEXTS, bench)
    result = {
        **{"id": piece.id, "model": label, "benchmark": piece.subject.label},
        **{"groups": groups_of(bench, results), "headlines": headlines_of(bench, results)},
        "wrong": surely_wrong(results),
        **parsed_by(bench, parser),
        "cut": cut,
        **{"skipped": skipped._asdict(), "seconds": round(time.perf_counter() - began, 1), "provenance": provenance()},
    }
    write_result(piece.folder, result)


def measured(result: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Every number of a result: "group" or "headline", its name, its values."""
    for kind in ("groups", "headlines"):
        yield from ((kind[:-1], name, values) for name, values in result[kind].items())

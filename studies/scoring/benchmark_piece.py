"""A model on a benchmark of photographs: all its tests are scored once, and the result is kept in a folder."""

import csv
import hashlib
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file, write_csv
from menagerie.envs.core.identity import digest
from menagerie.envs.core.plugins import OWN_MODULES, own_module
from menagerie.generators.benchmarks.benchmark import Benchmark, Item, ScoredItem, Summary, apply_rule, summarise
from menagerie.generators.benchmarks.matrix import MatrixBenchmark, Pool
from menagerie.generators.benchmarks.photographs import PhotographBenchmark, group_by_task
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.models.contract import attempt
from menagerie.models.evaluation.scoring import Encode, encode_blocks, has_too_many_pairs, score_items, score_pool
from menagerie.models.judges.judge import Judge
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.scorer import Scorer
from menagerie.studies.analysis.jackknife import jackknife_intervals
from menagerie.studies.scoring.judged import judged_record, questions_to
from menagerie.studies.scoring.models import Model
from menagerie.studies.scoring.piece import Piece, images_needed
from menagerie.studies.scoring.rerank import FirstPass, Reranker
from menagerie.studies.scoring.texts import (
    Skipped,
    cut_record,
    describe_parser,
    graph_identity,
    graph_record,
    parse_benchmarks,
    readable_texts,
)

VERSION = 3  # of how records are scored
PIECES, FILE, TEXTS = "pieces", "scores.csv", "texts.csv"
WRONG = 6  # wrong images of a piece that are kept
SCORES = ("record", "task", "official", "neutral", "tied", "scores")


@dataclass(frozen=True)
class Subject:
    """A benchmark whose files were read. It is pickled for the process that scores it."""

    label: str
    about: str
    published: Mapping[str, Mapping[str, float]]
    """Percentages that papers report, by model and measure."""
    bench: PhotographBenchmark = field(repr=False)
    content: Mapping[str, Any]
    """What decides a result: a hash of the records and the sizes of their images, and the graphs."""
    graphs: Mapping[str, Any]
    """The record of a result's graphs; empty where every text is one node."""
    parser: str
    """A line for the report: the parser's name, and how captions were parsed; empty without a parser."""
    files: tuple[str, ...] = ()
    """The user's own files that define the benchmark's classes and functions."""

    def __reduce__(self) -> tuple[Any, ...]:
        return unpickled_subject, (OwnFiles(self.files), {item.name: getattr(self, item.name) for item in fields(self)})


class OwnFiles:
    """The user's own files. Unpickling this runs them, so that what is pickled after it can be unpickled."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files
        for file in files:
            own_module(file)

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnFiles, (self.files,)


def unpickled_subject(own: OwnFiles, values: Mapping[str, Any]) -> Subject:
    return Subject(**values)


@dataclass(frozen=True)
class BenchmarkPiece(Piece):
    """A model on a benchmark."""

    subject: Subject
    skip: bool
    """Whether words that a model doesn't know are left out of texts."""
    first: FirstPass | None = field(default=None, kw_only=True)
    """The model that ranks candidates first, for pools with too many pairs for a model that reads each pair."""
    had: str = field(default="", kw_only=True, compare=False)
    """What the model's training had of the benchmark, in words; empty if this wasn't asked for."""
    tests: ClassVar[tuple[str, ...]] = ()
    on: ClassVar[str] = "benchmark"

    @property
    def trained_on(self) -> str | None:
        return self.had or None

    def rows(self, result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        place = {"model": self.model, "benchmark": self.label, "piece": self.id}
        return (place | {"kind": kind, "name": name, **its} for kind, name, its in result_numbers(result))

    def notes(self, result: Mapping[str, Any]) -> Iterator[str]:
        """Yield how many records weren't scored, what the model's training had, and what parsed the texts."""
        left = {word: sum(its[word] for its in result["tasks"].values()) for word in ("missing", "unread")}
        if any(left.values()):
            scored = sum(its["n"] for its in result["tasks"].values())
            reasons = ", ".join(f"{count} {word}" for word, count in left.items() if count)
            yield f"{scored} of {scored + sum(left.values())} scored; {reasons}: this is no result of the benchmark"
        if self.had:
            yield f"its training had {self.had}; no record is left out for this"
        if self.subject.parser:
            yield f"scene graphs of texts are from the parser {self.subject.parser}"

    @property
    def questions(self) -> int:
        return questions_to(self.tested.source, [self.subject.bench])

    def prepare_model(self) -> LoadedScorer | Judge:
        """Return the model or the judge."""
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # such images are refused with our own message
        return super().prepare_model()

    def score(self, prepared: LoadedScorer | Judge, report: Callable[[int], None]) -> dict[str, Any]:
        """Score all records, and write their scores."""
        reranker, skipped = None, Skipped()
        if isinstance(prepared, Judge):
            prepared.begin(report)
            scorer: Scorer | Judge = prepared
            bench = words = self.subject.bench
        else:
            scorer, space = prepared.scorer, prepared.scorer.texts
            bench = self.subject.bench.reframe(*prepared.framing)
            words, skipped = readable_texts(bench, space.words, space.context, self.skip, self.model)
            reranker = self.first and Reranker(self.first, words, self.device)
        cut = attempt(self.model, "fails", lambda: cut_record(scorer, words.texts))
        results = attempt(self.model, "fails", lambda: rate_tests(scorer, words, report, reranker))
        write_csv(self.folder / FILE, SCORES, outcome_rows(results))
        if bench.made_texts:
            write_texts(self.folder / TEXTS, bench)
        return {
            **{"tasks": task_numbers(bench, results), "headlines": headline_numbers(words, results)},
            "wrong": surest_errors(results),
            **({"reranked": reranker.record} if reranker and reranker.record else {}),
            **self.subject.graphs,
            **{"cut": cut, **judged_record(scorer), "skipped": skipped._asdict()},
        }


def result_numbers(result: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the numbers of a result: "task" or "headline", the name, and the values."""
    for kind in ("tasks", "headlines"):
        yield from ((kind[:-1], name, values) for name, values in result[kind].items())


def subject_of(spec: BenchmarkSpec, bench: PhotographBenchmark, parser: CaptionParser | None = None) -> Subject:
    """Return a benchmark with the identity of its content. Raises if it can't be pickled."""
    hashed = hashlib.sha256()
    for line in bench.content():
        hashed.update(f"{line}\n".encode())
    content = {"benchmark": spec.name, "records": hashed.hexdigest()[:16], **graph_identity(bench, parser)}
    published = {model: dict(numbers) for model, numbers in spec.published.items()}
    try:
        sent = pickle.dumps(bench)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        reason = f"the benchmark {spec.name} can't be sent to the process that scores it ({error})"
        raise UserError(f"{reason}; write its rules as functions of its file, not as lambdas") from error
    graphs, parser_line = graph_record(bench, parser), describe_parser(parser)
    return Subject(spec.name, spec.about, published, bench, content, graphs, parser_line, own_files_in(sent))


def own_files_in(pickled: bytes) -> tuple[str, ...]:
    """Return the user's own files whose classes and functions a pickle refers to."""
    own = {name: module for name, module in sys.modules.items() if name.startswith(OWN_MODULES)}
    return tuple(str(module.__file__) for name, module in own.items() if name.encode() in pickled)


def subjects_of(read: Sequence[tuple[BenchmarkSpec, PhotographBenchmark]], parser: str, parses: Path) -> list[Subject]:
    """Return the benchmarks with a parser's graphs, which are kept in the folder `parses`."""
    if not read:
        return []
    opened, benches = parse_benchmarks([bench for _, bench in read], parser, parses)
    return [subject_of(spec, bench, opened) for (spec, _), bench in zip(read, benches, strict=True)]


def benchmark_piece(model: Model, subject: Subject, skip: bool, **how: Any) -> BenchmarkPiece:
    """Return the piece of a model on a benchmark; `how` has further fields of the piece."""
    first, bench = how.get("first"), subject.bench
    decides = {"first": first.identity} if first and first.matters(bench) else {}
    name = digest({"model": model.weights, **subject.content, "skip": skip, "version": VERSION, **decides})
    pools = [pool.images for pool in bench.pools] if isinstance(bench, MatrixBenchmark) else [images_needed(bench)]
    return BenchmarkPiece(model, subject.label, name, sum(map(len, pools)), subject, skip, **{"below": PIECES, **how})


def rate_tests(
    scorer: Scorer | Judge,
    bench: PhotographBenchmark,
    report: Callable[[int], None],
    reranker: Reranker | None = None,
) -> list[ScoredItem]:
    """Return the results of all tests of a benchmark, by a scorer or by a judge. `report` receives the number of images
    whenever a scorer encodes some."""
    if isinstance(scorer, Judge):
        of_items, of_pool = partial(score_items, scorer), partial(judge_pool, scorer, bench)
    else:
        encode = partial(encode_blocks, scorer, bench.images, report=report)
        of_items = partial(score_items, scorer, encode=encode)
        of_pool = partial(embed_pool, scorer, bench, encode=encode, reranker=reranker)
    if isinstance(bench, MatrixBenchmark):
        return [result for pool in bench.pools if pool.pairs for result in of_pool(pool)]
    scored = zip(bench.items, of_items(bench), strict=True)
    return [ScoredItem(item, scores, apply_rule(partial(bench.outcome, item), scores)) for item, scores in scored]


def judge_pool(judge: Judge, bench: MatrixBenchmark, pool: Pool) -> Iterator[ScoredItem]:
    """Yield the results of a pool as a judge scores it. Pairs without a verdict rank as the mean of all others."""
    scores = judge.pool(bench, pool)
    silent = np.isnan(scores)
    if not silent.any():
        return bench.results(pool, scores)
    level = np.float32(0 if silent.all() else scores[~silent].mean(dtype=np.float64))
    return (mark_guessed(result, level) for result in bench.results(pool, np.where(silent, level, scores)))


def mark_guessed(result: ScoredItem, level: np.float32) -> ScoredItem:
    """Return the result of a query, with NaN in place of `level`, the score of pairs without a verdict. If the best
    true candidate has none, ties are broken at random by the official rule too."""
    item, scores, outcome = result
    if scores.flat[0] == level:
        outcome = outcome._replace(official=outcome.neutral)
    return ScoredItem(item, np.where(scores == level, np.nan, scores), outcome)


def embed_pool(
    scorer: Scorer, bench: MatrixBenchmark, pool: Pool, encode: Encode, reranker: Reranker | None
) -> Iterator[ScoredItem]:
    """Yield the results of a pool. Of too many pairs, only those of `reranker` are scored; without it this raises."""
    if reranker and has_too_many_pairs(scorer, pool):
        scores = reranker(scorer, pool, encode)
        return bench.results(pool, scores.by_image, scores.by_text)
    return bench.results(pool, score_pool(scorer, pool, encode))


def task_numbers(bench: PhotographBenchmark, results: Sequence[ScoredItem]) -> dict[str, dict[str, Any]]:
    """Return each task's numbers, and how many tests lack an image or all words of a text."""
    parts = group_by_task([result.item for result in results], [result.outcome for result in results])
    every, missing = bench.tests(), bench.untested()
    return {
        task: summarise(parts.get(task, []))._asdict()
        | {"missing": missing[task], "unread": every[task] - len(parts.get(task, []))}
        for task in bench.tasks
    }


def headline_numbers(bench: PhotographBenchmark, results: Sequence[ScoredItem]) -> dict[str, dict[str, Any]]:
    """Return the numbers that papers report, each with the interval of the official one; its bounds are None if there
    is none.

    `bench` has only the items that were scored. Intervals are over new records.
    """

    def of(chosen: Sequence[int]) -> Mapping[str, Summary]:
        return bench.headlines([results[k].item for k in chosen], [results[k].outcome for k in chosen])

    whole, pooled = of(range(len(results))), isinstance(bench, MatrixBenchmark)
    try:
        bounds = jackknife_intervals([result_cluster(result.item, pooled) for result in results], of)
    except Exception:  # the user's own benchmark may fail without some records; its scores stay
        bounds = {}
    return {
        name: summary._asdict() | dict(zip(("low", "high"), bounds.get(name, (None, None)), strict=True))
        for name, summary in whole.items()
    }


def result_cluster(item: Item, pooled: bool) -> tuple[str, str | int]:
    """Return the key that similar records share. Without a cluster it is a record's task and name, because tasks may
    share names.

    In a pool, all queries of an image and of its texts share a key; there an item's cluster may be a class.
    """
    if pooled:
        return "", item.images[0]
    return ("", item.cluster) if item.cluster not in ("", item.record) else (item.task, item.record)


def outcome_rows(results: Sequence[ScoredItem]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each test: its outcome, and the scores of its texts, one image after another."""
    for item, scores, outcome in results:
        texts = "; ".join(" ".join(f"{score:.9g}" for score in row) for row in scores)
        yield item.record, item.task, f"{outcome.official:g}", f"{outcome.neutral:.6g}", int(outcome.tied), texts


def write_texts(path: Path, bench: Benchmark) -> None:
    """Write a row for each item with its texts, for benchmarks whose texts are made by this package."""
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            (item.record, *(t.text for t in item.texts)) for item in bench.items
        )


def surest_errors(results: Sequence[ScoredItem]) -> list[Mapping[str, Any]]:
    """Return the images of wrong tests that prefer a false text by the widest margins, each once."""
    examples = [example for result in results if result.outcome.official < 1 for example in preferences(result)]
    shown: dict[int, Mapping[str, Any]] = {}
    for example in sorted(examples, key=lambda one: one["scores"][1] - one["scores"][0], reverse=True):
        if len(shown) < WRONG:
            shown.setdefault(example["image"], example)
    return list(shown.values())


def preferences(result: ScoredItem) -> Iterator[Mapping[str, Any]]:
    """Yield images of a test that prefer a false text or tie with it; none for tests that ask for images."""
    item, scores, _ = result
    if len(item.texts) < max(2, len(item.images)):  # texts that ask for images
        return
    for k, row in enumerate(scores):
        true_text = min(item.own(k), key=row.__getitem__)
        best = max((place for place in range(len(row)) if place not in item.own(k)), key=row.__getitem__)
        if row[best] >= row[true_text]:
            record = item.record if item.record.startswith(item.task) else f"{item.task}, {item.record}"
            yield {
                **{"image": item.images[k], "record": record},
                **{"true": item.texts[true_text].text, "preferred": item.texts[best].text},
                "scores": [float(row[true_text]), float(row[best])],
            }

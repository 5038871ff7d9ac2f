"""A model on a benchmark of photographs: all its tests are scored once, and the result is kept in a folder."""

import hashlib
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_csv
from menagerie.envs.core.identity import digest
from menagerie.envs.core.plugins import OWN_MODULES, own_module
from menagerie.generators.benchmarks.benchmark import Item, ScoredItem, Summary, apply_rule, summarise
from menagerie.generators.benchmarks.matrix import MatrixBenchmark, Pool
from menagerie.generators.benchmarks.photographs import PhotographBenchmark, group_by_task
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.captions.templates import Caption
from menagerie.generators.parsers.registry import DEFAULT, open_parser
from menagerie.generators.sources.captions_file import parse_all
from menagerie.models.contract import attempt
from menagerie.models.evaluation.scoring import Encode, encode_blocks, has_too_many_pairs, score_items, score_pool
from menagerie.models.judges.judge import Judge
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.scorer import Scorer
from menagerie.studies.analysis.intervals import jackknife_intervals
from menagerie.studies.scoring.judged import judged_record, questions_to
from menagerie.studies.scoring.models import Model
from menagerie.studies.scoring.piece import SCORES, Piece, images_needed
from menagerie.studies.scoring.rerank import FirstPass, Reranker
from menagerie.studies.scoring.texts import Skipped, cut_record, readable_texts

VERSION = 3  # of how records are scored
PIECES, TEXTS = "pieces", "texts.csv"
COLUMNS = ("record", "task", "official", "neutral", "tied", "scores")


@dataclass(frozen=True)
class Subject:
    """A benchmark whose files were read."""

    label: str
    published: Mapping[str, Mapping[str, float]]
    """Percentages that papers report, by model and measure."""
    pickled: bytes = field(repr=False)
    """The benchmark, for the process that scores it."""
    files: tuple[str, ...]
    """The user's own files that define the benchmark's classes and functions."""
    content: Mapping[str, Any]
    """What decides a result: a hash of the records and the sizes of their images, and the graphs."""
    graphs: Mapping[str, Any]
    """The record of a result's graphs: their parser, and how many texts are one node; empty where all are."""

    @property
    def bench(self) -> PhotographBenchmark:
        return unpickled(self.pickled, self.files)


@cache
def unpickled(pickled: bytes, files: Sequence[str]) -> PhotographBenchmark:
    """Return a benchmark, after running the user's own files that define it."""
    for file in files:
        own_module(file)
    return pickle.loads(pickled)


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
        if parser := result.get("parser"):
            yield f"scene graphs of {parser['texts']} texts by {parser['name']}, {parser['fell_back']} of one node"

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
        write_csv(self.folder / SCORES, COLUMNS, outcome_rows(results))
        if bench.made_texts:
            rows = ([item.record, *(text.text for text in item.texts)] for item in bench.items)
            write_csv(self.folder / TEXTS, ("record", "texts"), rows)
        return {
            **{"tasks": task_numbers(bench, results), "headlines": headline_numbers(words, results)},
            **({"reranked": reranker.record} if reranker and reranker.record else {}),
            **self.subject.graphs,
            **{"cut": cut, **judged_record(scorer), "skipped": skipped._asdict()},
        }


def result_numbers(result: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the numbers of a result: "task" or "headline", the name, and the values."""
    for kind in ("tasks", "headlines"):
        yield from ((kind[:-1], name, values) for name, values in result[kind].items())


def subjects_of(read: Sequence[tuple[BenchmarkSpec, PhotographBenchmark]], name: str, parses: Path) -> list[Subject]:
    """Return the benchmarks with the graphs of a parser, which are kept in the folder `parses`; by default each text is
    one node.

    All texts are parsed at once. Raises for captions for which the parser has no answer.
    """
    if name == DEFAULT or not read:
        return [subject_of(spec, bench) for spec, bench in read]
    parser, found = open_parser(name, parses), []
    texts = [list(dict.fromkeys(text.text for text in bench.texts)) for _, bench in read]
    parse_all(parser, list(dict.fromkeys(text for its in texts for text in its)))
    for (spec, bench), its in zip(read, texts, strict=True):
        graphs = {text: parser.graph(text) for text in its}
        made = bench.reword({text: Caption(text.text, graphs[text.text]) for text in bench.texts})
        hashed = hashlib.sha256(repr([*map(tuple, graphs.values())]).encode(errors="backslashreplace")).hexdigest()
        record = {"name": parser.name, "texts": len(its), "fell_back": sum(map(parser.fell_back, its))}
        found.append(subject_of(spec, made, {"parser": parser.identity(), "graphs": hashed}, {"parser": record}))
    return found


def subject_of(
    spec: BenchmarkSpec,
    bench: PhotographBenchmark,
    decides: Mapping[str, Any] | None = None,
    graphs: Mapping[str, Any] | None = None,
) -> Subject:
    """Return a benchmark with the identity of its content, to which graphs add what `decides` says. Raises if it can't
    be pickled."""
    hashed = hashlib.sha256()
    for line in bench.content():
        hashed.update(f"{line}\n".encode())
    try:
        pickled = pickle.dumps(bench)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        reason = f"the benchmark {spec.name} can't be sent to the process that scores it ({error})"
        raise UserError(f"{reason}; write its rules as functions of its file, not as lambdas") from error
    own = {name: module for name, module in sys.modules.items() if name.startswith(OWN_MODULES)}
    files = tuple(str(module.__file__) for name, module in own.items() if name.encode() in pickled)
    content = {"benchmark": spec.name, "records": hashed.hexdigest()[:16], **(decides or {})}
    published = {model: dict(numbers) for model, numbers in spec.published.items()}
    return Subject(spec.name, published, pickled, files, content, graphs or {})


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

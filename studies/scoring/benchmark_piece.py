"""One model on one benchmark of photographs: all its tests are scored once, and the result is kept in a folder."""

import csv
import hashlib
import pickle
import sys
import time
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
from menagerie.generators.benchmarks.benchmark import Benchmark, Item, Result, Summary, judged, summarise
from menagerie.generators.benchmarks.matrix import MatrixBenchmark, Pool
from menagerie.generators.benchmarks.photographs import PhotographSet, by_task
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.models.contract import attempt
from menagerie.models.evaluation.embedding_store import EmbeddingFolder
from menagerie.models.evaluation.embeddings import Embeddings
from menagerie.models.evaluation.scoring import Encode, score_items, score_pool, too_many
from menagerie.models.judges.judge import Judge
from menagerie.models.library.loaded import LoadedScorer
from menagerie.studies.analysis.jackknife import jackknife_intervals
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import write_result
from menagerie.studies.scoring.judged import judged_record, questions_to
from menagerie.studies.scoring.models import Model
from menagerie.studies.scoring.piece import Piece, images_of
from menagerie.studies.scoring.rerank import FirstPass, Reranker
from menagerie.studies.scoring.texts import Skipped, cut_record, described, identity_of, parsed, parsed_by, readable

VERSION = 3  # of how records are scored
PIECES, FILE, TEXTS = "pieces", "scores.csv", "texts.csv"
WRONG = 6  # images of a piece that were got wrong
SCORES = ("record", "task", "official", "neutral", "tied", "scores")


@dataclass(frozen=True)
class Subject:
    """A benchmark whose files were read; it is pickled for the process that scores it."""

    label: str
    about: str
    published: Mapping[str, Mapping[str, float]]
    """Percentages that papers report, by model and measure."""
    bench: PhotographSet = field(repr=False)
    content: Mapping[str, Any]
    """Everything in the benchmark that decides a result: a hash of its records and of the sizes of their images, and
    its graphs."""
    graphs: Mapping[str, Any]
    """The record of a result's graphs; empty where every text is one node."""
    parser: str
    """A line for the report: the parser's name, and counts of how captions were parsed; empty without a parser."""
    files: tuple[str, ...] = ()
    """The user's own files that the benchmark's classes and functions come from."""

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (OwnFiles(self.files), {item.name: getattr(self, item.name) for item in fields(self)})


class OwnFiles:
    """The user's own files. Unpickling this runs them, so that what is pickled after it can be loaded."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files
        for file in files:
            own_module(file)

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnFiles, (self.files,)


def restored(own: OwnFiles, values: Mapping[str, Any]) -> Subject:
    return Subject(**values)


@dataclass(frozen=True)
class BenchmarkPiece(Piece):
    """A model on a benchmark."""

    subject: Subject
    skip: bool
    """Whether words that a model doesn't know are left out."""
    embeddings: Path | None = field(default=None, kw_only=True)
    """Folder in which embeddings of images are kept; None keeps none."""
    embeddings_limit: int = field(default=0, kw_only=True)
    """Largest size of these embeddings together, in bytes."""
    first: FirstPass | None = field(default=None, kw_only=True)
    """The model that ranks the candidates first, for pools with too many pairs for a model that reads each pair."""
    had: str = field(default="", kw_only=True, compare=False)
    """What the model's training had of the benchmark, in words; empty if that wasn't asked."""
    tests: ClassVar[tuple[str, ...]] = ()

    @property
    def questions(self) -> int:
        return questions_to(self.tested.source, [self.subject.bench])

    def prepared(self) -> tuple[LoadedScorer, Embeddings] | Judge:
        """Return the model with its embeddings of images, or the judge."""
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # such images are refused, with a line of ours
        loaded = super().prepared()
        if isinstance(loaded, Judge):
            return loaded
        return loaded, attempt(self.model, "fails", lambda: self.embeddings_of(loaded, self.tested))

    def embeddings_of(self, loaded: LoadedScorer, model: Model) -> Embeddings:
        """Return a model's embeddings of images, which are kept in the folder `embeddings` if there is one."""
        folder = EmbeddingFolder(self.embeddings, self.embeddings_limit) if self.embeddings else None
        return Embeddings(loaded.scorer, model.weights, loaded.framing.resolution, folder)

    def score(self, prepared: tuple[LoadedScorer, Embeddings] | Judge, report: Callable[[int], None]) -> None:
        """Score all records, and write their scores and then the result."""
        began = time.perf_counter()
        reranker = None
        if isinstance(prepared, Judge):
            prepared.begin(report)
            scorer = rater = prepared
            bench = words = self.subject.bench
            skipped = Skipped()
        else:
            model, rater = prepared
            scorer, space = model.scorer, model.scorer.texts
            bench = self.subject.bench.framed(*model.framing)
            words, skipped = readable(bench, space.words, space.context, self.skip, self.model)
            reranker = self.first and Reranker(self.first, words, self.device, self.embeddings_of)
        cut = attempt(self.model, "fails", lambda: cut_record(scorer, words.texts))
        results = attempt(self.model, "fails", lambda: rated(rater, words, report, reranker))
        write_csv(self.folder / FILE, SCORES, score_rows(results))
        if bench.made_texts:
            write_texts(self.folder / TEXTS, bench)
        result = {
            **{"id": self.id, "model": self.model, "benchmark": self.label},
            **{"tasks": tasks_of(bench, results), "headlines": headlines_of(words, results)},
            "wrong": surely_wrong(results),
            **({"reranked": reranker.record} if reranker and reranker.record else {}),
            **self.subject.graphs,
            **{"cut": cut, **judged_record(scorer)},
            **{"skipped": skipped._asdict(), "seconds": round(time.perf_counter() - began, 1)},
            "provenance": provenance(),
        }
        write_result(self.folder, result)


def subject_of(spec: BenchmarkSpec, bench: PhotographSet, parser: CaptionParser | None = None) -> Subject:
    """A benchmark with the identity of its content; raises for one that can't be pickled."""
    hashed = hashlib.sha256()
    for line in bench.content():
        hashed.update(f"{line}\n".encode())
    content = {"benchmark": spec.name, "records": hashed.hexdigest()[:16], **identity_of(bench, parser)}
    published = {model: dict(numbers) for model, numbers in spec.published.items()}
    try:
        sent = pickle.dumps(bench)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        reason = f"the benchmark {spec.name} can't be sent to the process that scores it ({error})"
        raise UserError(f"{reason}; write its rules as functions of its file, not as lambdas") from error
    graphs, parser_line = parsed_by(bench, parser), described(parser)
    return Subject(spec.name, spec.about, published, bench, content, graphs, parser_line, own_files_in(sent))


def own_files_in(pickled: bytes) -> tuple[str, ...]:
    """The user's own files whose classes and functions a pickle refers to."""
    own = {name: module for name, module in sys.modules.items() if name.startswith(OWN_MODULES)}
    return tuple(str(module.__file__) for name, module in own.items() if name.encode() in pickled)


def subjects_of(read: Sequence[tuple[BenchmarkSpec, PhotographSet]], parser: str, parses: Path) -> list[Subject]:
    """Return the benchmarks that were read, with a parser's graphs, which are kept in the folder `parses`."""
    if not read:
        return []
    opened, benches = parsed([bench for _, bench in read], parser, parses)
    return [subject_of(spec, bench, opened) for (spec, _), bench in zip(read, benches, strict=True)]


def piece_of(model: Model, subject: Subject, skip: bool, **how: Any) -> BenchmarkPiece:
    """One model on one benchmark; `how` are further fields of its piece."""
    first, bench = how.get("first"), subject.bench
    decides = {"first": first.identity} if first and first.matters(bench) else {}
    name = digest({"model": model.weights, **subject.content, "skip": skip, "version": VERSION, **decides})
    pools = [pool.images for pool in bench.pools] if isinstance(bench, MatrixBenchmark) else [images_of(bench)]
    return BenchmarkPiece(model, subject.label, name, sum(map(len, pools)), subject, skip, **{"below": PIECES, **how})


def rated(
    rater: Embeddings | Judge, bench: PhotographSet, report: Callable[[int], None], reranker: Reranker | None = None
) -> list[Result]:
    """Return the results of all tests of a benchmark, by a scorer's embeddings or by a judge. `report` receives numbers
    of images as a scorer's embeddings of them are made."""
    if isinstance(rater, Judge):
        of_items, of_pool = partial(score_items, rater), partial(judged_pool, rater, bench)
    else:
        encode = partial(rater.encode, bench, report=report)
        of_items = partial(score_items, rater.scorer, encode=encode)
        of_pool = partial(scored_pool, rater, bench, encode=encode, reranker=reranker)
    if isinstance(bench, MatrixBenchmark):
        return [result for pool in bench.pools if pool.pairs for result in of_pool(pool)]
    scored = zip(bench.items, of_items(bench), strict=True)
    return [Result(item, scores, judged(partial(bench.outcome, item), scores)) for item, scores in scored]


def judged_pool(judge: Judge, bench: MatrixBenchmark, pool: Pool) -> Iterator[Result]:
    """Yield the tests of a pool, as a judge scores them. Pairs without a verdict rank as the mean of all others."""
    scores = judge.pool(bench, pool)
    silent = np.isnan(scores)
    if not silent.any():
        return bench.results(pool, scores)
    level = np.float32(0 if silent.all() else scores[~silent].mean(dtype=np.float64))
    return (guessed(result, level) for result in bench.results(pool, np.where(silent, level, scores)))


def guessed(result: Result, level: np.float32) -> Result:
    """Return the result of a query with NaN in place of the score `level`, which pairs without a verdict have. If the
    best true candidate has it, ties are broken at random, officially too."""
    item, scores, outcome = result
    if scores.flat[0] == level:
        outcome = outcome._replace(official=outcome.neutral)
    return Result(item, np.where(scores == level, np.nan, scores), outcome)


def scored_pool(
    embeddings: Embeddings, bench: MatrixBenchmark, pool: Pool, encode: Encode, reranker: Reranker | None
) -> Iterator[Result]:
    """Yield the tests of a pool. If it has too many pairs for the scorer, only the best candidates are scored, or,
    without `reranker`, this raises."""
    if reranker and too_many(embeddings.scorer, pool):
        scores = reranker(embeddings.scorer, pool, encode)
        return bench.results(pool, scores.by_image, scores.by_text)
    return bench.results(pool, score_pool(embeddings.scorer, pool, encode))


def tasks_of(bench: PhotographSet, results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """Return the numbers of each task, and how many of its tests were left out because an image, or all words of a
    text, are missing."""
    parts = by_task([result.item for result in results], [result.outcome for result in results])
    every, missing = bench.tests(), bench.untested()
    return {
        task: summarise(parts.get(task, []))._asdict()
        | {"missing": missing[task], "unread": every[task] - len(parts.get(task, []))}
        for task in bench.tasks
    }


def headlines_of(bench: PhotographSet, results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """Return the numbers that papers report, with an interval of the official one; its bounds are None if there is
    none.

    `bench` has just the items that were scored. Intervals are over new records.
    """

    def of(chosen: Sequence[int]) -> Mapping[str, Summary]:
        return bench.headlines([results[k].item for k in chosen], [results[k].outcome for k in chosen])

    whole, pooled = of(range(len(results))), isinstance(bench, MatrixBenchmark)
    try:
        bounds = jackknife_intervals([cluster_of(result.item, pooled) for result in results], of)
    except Exception:  # a benchmark of the user's own that fails without some records keeps what was scored
        bounds = {}
    return {
        name: summary._asdict() | dict(zip(("low", "high"), bounds.get(name, (None, None)), strict=True))
        for name, summary in whole.items()
    }


def cluster_of(item: Item, pooled: bool) -> tuple[str, str | int]:
    """Return the key that records share if they resemble each other. Without a cluster it is a record's task and name,
    because tasks may use the same names.

    In a pool all queries of an image and of its texts share a key; there, an item's cluster may be a class.
    """
    if pooled:
        return "", item.images[0]
    return ("", item.cluster) if item.cluster not in ("", item.record) else (item.task, item.record)


def score_rows(results: Sequence[Result]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each test: its outcome, and the scores of its texts, one image after another."""
    for item, scores, outcome in results:
        texts = "; ".join(" ".join(f"{score:.9g}" for score in row) for row in scores)
        yield item.record, item.task, f"{outcome.official:g}", f"{outcome.neutral:.6g}", int(outcome.tied), texts


def write_texts(path: Path, bench: Benchmark) -> None:
    """Write a row for each item with its texts, for benchmarks whose texts were made here."""
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            (item.record, *(t.text for t in item.texts)) for item in bench.items
        )


def surely_wrong(results: Sequence[Result]) -> list[Mapping[str, Any]]:
    """The images that preferred a false text by the widest margin in tests that went wrong, each once."""
    examples = [example for result in results if result.outcome.official < 1 for example in preferences(result)]
    shown: dict[int, Mapping[str, Any]] = {}
    for example in sorted(examples, key=lambda one: one["scores"][1] - one["scores"][0], reverse=True):
        if len(shown) < WRONG:
            shown.setdefault(example["image"], example)
    return list(shown.values())


def preferences(result: Result) -> Iterator[Mapping[str, Any]]:
    """Yield images of a test that score a false text as high as one of their own, or higher, with both texts and
    scores; none for tests that ask for images."""
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

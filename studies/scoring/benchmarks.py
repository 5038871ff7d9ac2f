"""Models on benchmarks of photographs: their pieces, in which models that read each pair may rank the best candidates
of another again; their numbers, also beside a paper's tables, whose columns name our numbers."""

import hashlib
import pickle
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_csv
from menagerie.envs.core.identity import digest
from menagerie.envs.core.plugins import OWN_MODULES, own_module
from menagerie.envs.core.reading import read_toml
from menagerie.generators.benchmarks.benchmark import Item, ScoredItem, Scores, Summary, apply_rule, summarise
from menagerie.generators.benchmarks.matrix import MatrixBenchmark, Pool
from menagerie.generators.benchmarks.photographs import PhotographBenchmark, group_by_task, summaries_by_task
from menagerie.generators.benchmarks.probe import Probe
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.benchmarks.words_alone import bag_scores
from menagerie.generators.captions.templates import Caption
from menagerie.generators.parsers.registry import DEFAULT, open_parser
from menagerie.generators.sources.captions_file import parse_all
from menagerie.models.evaluation import scoring
from menagerie.models.evaluation.reranking import rerank
from menagerie.models.evaluation.scoring import (
    Encode,
    encode_blocks,
    has_too_many_pairs,
    score_items,
    score_pool,
    text_vectors,
)
from menagerie.models.judges.judge import Judge
from menagerie.models.library.loaded import LoadedScorer
from menagerie.studies.analysis.intervals import jackknife_intervals
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.estimate import NOTHING
from menagerie.studies.frame.parts import Part, Rows
from menagerie.studies.frame.records import Records
from menagerie.studies.scoring.classification import classification_parts
from menagerie.studies.scoring.models import Model
from menagerie.studies.scoring.page import Score, in_percent, level_of, named_results, seed_mean, short_names
from menagerie.studies.scoring.piece import (
    NONE_SKIPPED,
    SCORES,
    Piece,
    cut_record,
    images_needed,
    open_model,
    readable_texts,
)
from menagerie.studies.scoring.probe import image_vectors, probe_results

VERSION = 4  # of how records are scored
PIECES = "pieces"
OUTCOMES = ("record", "task", "official", "neutral", "tied", "scores")  # of a test, in a piece's folder
NUMBERS = ("official", "neutral", "tie_rate", "n", "missing", "unread", "low", "high")
COLUMNS = ("model", "benchmark", "kind", "name", *NUMBERS, "piece")
THEIRS = " (theirs)"
PAPERS = (
    f"The tables of the paper on OC-CLIP, in its layout: rows marked{THEIRS} are its numbers, all others were measured "
    "here by each benchmark's official rule. –: there is no number; the notes say of which tests not all records count."
)
OC_CLIP = read_toml(Path(__file__).with_name("oc_clip_tables.toml"))


@dataclass(frozen=True)
class Subject:
    """A benchmark whose files were read."""

    label: str
    published: Mapping[str, Mapping[str, float]]  # percentages that papers report, by model and measure
    pickled: bytes = field(repr=False)  # for the process that scores it
    files: tuple[str, ...]  # the user's own that define its classes and functions
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
class FirstPass:
    """The model that ranks all candidates of large pools, and how many candidates of each query are ranked again."""

    model: Model
    top: int


@dataclass(frozen=True)
class BenchmarkPiece(Piece):
    """A model on a benchmark."""

    subject: Subject
    skip: bool  # whether words that a model doesn't know are left out of texts
    first: FirstPass | None = field(default=None, kw_only=True)  # for pools with too many pairs
    had: str = field(default="", kw_only=True, compare=False)
    """What the model's training had of the benchmark, in words; empty if this wasn't asked for."""
    tests: ClassVar[tuple[str, ...]] = ()
    on: ClassVar[str] = "benchmark"

    def rows(self, result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        place = {"model": self.model, "benchmark": self.label, "piece": self.id}
        for kind in ("task", "headline"):
            yield from (place | {"kind": kind, "name": name, **its} for name, its in result[f"{kind}s"].items())

    def notes(self, result: Mapping[str, Any]) -> Iterator[str]:
        """Yield how many records or pairs weren't scored, what the model's training had, and what parsed the texts."""
        left = {word: sum(its[word] for its in result["tasks"].values()) for word in ("missing", "unread")}
        if any(left.values()):
            scored = sum(its["n"] for its in result["tasks"].values())
            reasons = ", ".join(f"{count} {word}" for word, count in left.items() if count)
            yield f"{scored} of {scored + sum(left.values())} scored; {reasons}: this is no result of the benchmark"
        if turned := result.get("turned"):
            yield f"{turned} image files have an EXIF orientation, which isn't applied, as in official code"
        if self.had:
            yield f"its training had {self.had}; no record is left out for this"
        if parser := result.get("parser"):
            yield f"scene graphs of {parser['texts']} texts by {parser['name']}, {parser['fell_back']} of one node"
        for one in result.get("reranked", {}).values():
            yield (
                f"only the best {one['top']} candidates of each query by {one['model']} were scored, {one['pairs']} of "
                f"{one['of']} pairs; all others keep that model's order, behind them"
            )

    def asked(self) -> Sequence[PhotographBenchmark]:
        return [self.subject.bench]

    def score(self, loaded: LoadedScorer | Judge, report: Callable[[int], None]) -> dict[str, Any]:
        """Score all records, and write their scores."""
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # such images are refused with our own message
        bench = words = self.subject.bench
        scorer, skipped, encode, reranked = loaded, NONE_SKIPPED, None, {}
        if isinstance(loaded, LoadedScorer):
            scorer, bench = loaded.scorer, bench.reframe(*loaded.framing)
            words, skipped = readable_texts(bench, scorer, self.skip, self.model)
            encode = partial(encode_blocks, scorer, words.images, report=report)
        cut = cut_record(scorer, words.texts)
        if isinstance(words, Probe):
            results = list(probe_results(words, image_vectors(scorer, words, encode)))
        elif isinstance(words, MatrixBenchmark):
            pools = (pool for pool in words.pools if pool.pairs)
            results = [its for pool in pools for its in self.pool_results(scorer, words, encode, reranked, pool)]
        else:
            scored = zip(words.items, score_items(scorer, words, encode=encode), strict=True)
            results = [ScoredItem(item, its, apply_rule(partial(words.outcome, item), its)) for item, its in scored]
        vectors = None if isinstance(scorer, Judge) else partial(text_vectors, scorer)
        further = list(words.further(results, vectors, scorer.match_level))
        write_csv(self.folder / SCORES, OUTCOMES, outcome_rows([*results, *further]))
        if bench.made_texts:
            rows = ([item.record, *(text.text for text in item.texts)] for item in bench.items)
            write_csv(self.folder / "texts.csv", ("record", "texts"), rows)
        numbers = {"tasks": task_numbers(bench, results), "headlines": headline_numbers(words, results, further)}
        numbers |= {"reranked": reranked} if reranked else {}
        turned = len(bench.files.turned)
        return {**numbers, **self.subject.graphs, "cut": cut, "skipped": skipped, "turned": turned}

    def pool_results(
        self, scorer: Any, bench: MatrixBenchmark, encode: Encode | None, reranked: dict[str, Any], pool: Pool
    ) -> Iterator[ScoredItem]:
        """Yield the results of a pool, by a judge if there is no `encode`. Of too many pairs only each query's best
        candidates of `first` are scored, which `reranked` then says; without it this raises."""
        if encode is None:
            return judge_pool(scorer, bench, pool)
        if not (self.first and has_too_many_pairs(scorer, pool)):
            return bench.results(pool, score_pool(scorer, pool, encode))
        before, top, name = open_model(self.first.model, self.device), self.first.top, self.first.model.label
        if isinstance(before, Judge) or before.scorer.pairs_only:
            raise UserError(f"--rerank {name} reads each pair too; name a model that has vectors")
        seen = bench.reframe(*before.framing)
        readable_texts(seen, before.scorer, False, f"--rerank {name}")  # raises for a word that it lacks
        first = score_pool(before.scorer, pool, partial(encode_blocks, before.scorer, seen.images))
        ranking = rerank(scorer, pool, encode, first, top)
        reranked[pool.name] = {"model": name, "top": top, "pairs": ranking.pairs, "of": scoring.count_passes(pool)}
        return bench.results(pool, ranking.by_image, ranking.by_text)


def subjects_of(read: Sequence[tuple[BenchmarkSpec, PhotographBenchmark]], name: str, parses: Path) -> list[Subject]:
    """Return the benchmarks, all texts parsed at once by the parser of a name, whose graphs `parses` keeps."""
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
    """Return a benchmark with the identity of its content and of what else `decides`. Raises if it can't be pickled."""
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
    pools = bench.pools if isinstance(bench, MatrixBenchmark) else ()
    matters = first and any(scoring.count_passes(pool) > scoring.MOST_PAIRS for pool in pools)
    decides = {"first": {"model": first.model.weights, "top": first.top}} if matters else {}
    name = digest({"model": model.weights, **subject.content, "skip": skip, "version": VERSION, **decides})
    images = sum(len(pool.images) for pool in pools) or images_needed(bench)
    images = len(bench.numbers) if isinstance(bench, Probe) else images
    return BenchmarkPiece(model, subject.label, name, images, subject, skip, **{"below": PIECES, **how})


def judge_pool(judge: Judge, bench: MatrixBenchmark, pool: Pool) -> Iterator[ScoredItem]:
    """Yield the results of a pool as a judge scores it. Pairs without a verdict rank as the mean of all others."""
    scores = judge.pool(bench, pool)
    silent = np.isnan(scores)
    if not silent.any():
        return bench.results(pool, scores)
    level = np.float32(0 if silent.all() else scores[~silent].mean(dtype=np.float64))
    return (mark_guessed(result, level) for result in bench.results(pool, np.where(silent, level, scores)))


def mark_guessed(result: ScoredItem, level: np.float32) -> ScoredItem:
    """Return the result of a query, with NaN in place of `level`, the score of pairs without a verdict."""
    item, scores, outcome = result
    if scores.flat[0] == level:  # the best true candidate: the official rule too breaks ties at random
        outcome = outcome._replace(official=outcome.neutral)
    return ScoredItem(item, np.where(scores == level, np.nan, scores), outcome)


def task_numbers(bench: PhotographBenchmark, results: Sequence[ScoredItem]) -> dict[str, dict[str, Any]]:
    """Return each task's numbers, and how many tests lack an image or all words of a text."""
    parts = group_by_task([result.item for result in results], [result.outcome for result in results])
    every, missing = bench.tests(), bench.untested()
    return {
        task: summarise(parts.get(task, []))._asdict()
        | {"missing": missing[task], "unread": every[task] - len(parts.get(task, []))}
        for task in bench.tasks
    }


def headline_numbers(
    bench: PhotographBenchmark, results: Sequence[ScoredItem], further: Sequence[ScoredItem]
) -> dict[str, dict[str, Any]]:
    """Return the numbers that papers report, with intervals of the official ones for new records, or None."""
    every = [*results, *further]

    def of(chosen: Sequence[int]) -> Mapping[str, Summary]:
        own = [every[k] for k in chosen if k < len(results)], [every[k] for k in chosen if k >= len(results)]
        first, more = (([one.item for one in its], [one.outcome for one in its]) for its in own)
        return {**bench.headlines(*first), **(bench.further_headlines(*more) if further else {})}

    whole, pooled = of(range(len(every))), isinstance(bench, MatrixBenchmark)
    try:
        bounds = jackknife_intervals([result_cluster(result.item, pooled) for result in every], of)
    except Exception:  # the user's own benchmark may fail without some records; its scores stay
        bounds = {}
    return {
        name: summary._asdict() | dict(zip(("low", "high"), bounds.get(name, (None, None)), strict=True))
        for name, summary in whole.items()
    }


def result_cluster(item: Item, pooled: bool) -> tuple[str, str | int]:
    """Return the key that similar records share: in a pool, the queries of an image and its texts; else the cluster."""
    if pooled:
        return "", item.images[0]
    return ("", item.cluster) if item.cluster not in ("", item.record) else (item.task, item.record)


def outcome_rows(results: Sequence[ScoredItem]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each test: its outcome, and the scores of its texts, one image after another."""
    for item, scores, outcome in results:
        texts = "; ".join(" ".join(f"{score:.9g}" for score in row) for row in scores)
        yield item.record, item.task, f"{outcome.official:g}", f"{outcome.neutral:.6g}", int(outcome.tied), texts


def scores(records: Records) -> list[Score]:
    """Return the numbers of all models on all benchmarks, and those that papers report."""
    names = short_names(records)
    found = named_results(records)
    rows = (row | {"model": names[row["model"]]} for piece, result in found for row in piece.rows(result))
    return benchmark_scores(rows, {piece.label: piece.subject for piece, _ in found})


def benchmark_scores(
    rows: Iterable[Mapping[str, Any]],
    subjects: Mapping[str, Subject],
    published: bool = True,
    chance: float | None = None,
) -> list[Score]:
    """Return the numbers in rows of results.csv, in the mean over rows of one model (its seeds), and those that papers
    report if `published`. A page draws the first headline of each benchmark. `chance`: on tests without a subject."""
    groups: dict[tuple[str, str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["official"] is not None:
            groups.setdefault((row["benchmark"], row["kind"], row["name"], row["model"]), []).append(row)
    first: dict[str, str] = {}
    found = []
    for (test, kind, name, model), its in groups.items():
        title = "" if kind != "headline" else test if name in ("", "all") else f"{test}, {name}"
        drawn = bool(title) and first.setdefault(test, name) == name
        ties = its[0]["tie_rate"] if len(its) == 1 else None
        level, words = chance, None
        if test in subjects:
            bench = subjects[test].bench
            level, words = (levels.get((kind, name)) for levels in (chances_in(bench), chances_in(bench, bag_scores)))
        score = Score(model, test, kind, name, seed_mean(list(map(level_of, its))), ties, level, title, drawn)
        found.append(score._replace(words=words))
    headlines = {(its.test, its.measure): its.title for its in found if its.title}
    for test, subject in subjects.items() if published else ():
        for model, name, value in ((model, *its) for model, of in subject.published.items() for its in of.items()):
            if title := headlines.get((test, name)):
                theirs = NOTHING._replace(value=value / 100)
                found.append(Score(model + THEIRS, test, "headline", name, theirs, title=title))
    return found


@lru_cache(maxsize=64)  # reports are written anew after every model
def chances_in(
    bench: PhotographBenchmark, read: Callable[[Item], Scores] | None = None
) -> dict[tuple[str, str], float]:
    """Return chance accuracies on one benchmark: those of equal scores, with ties broken at random; or those of what
    gives items the scores `read`, of which pools have none."""
    if isinstance(bench, MatrixBenchmark):
        found = [] if read else [its for pool in bench.pools for its in bench.tied_outcomes(pool)]
    else:
        read = read or (lambda item: np.zeros((len(item.images), len(item.texts))))
        found = [(item, bench.outcome(item, read(item))) for item in bench.items]
    both = [item for item, _ in found], [outcome for _, outcome in found]
    level = [ScoredItem(item, np.zeros((len(item.images), len(item.texts))), outcome) for item, outcome in found]
    more = list(bench.further(level, lambda texts: {text: np.ones(1) for text in texts}))
    further = bench.further_headlines([one.item for one in more], [one.outcome for one in more])
    every = {"task": summaries_by_task(*both), "headline": {**bench.headlines(*both), **further}}
    numbers = {(kind, name): its.neutral for kind, summaries in every.items() for name, its in summaries.items()}
    return {name: neutral for name, neutral in numbers.items() if neutral is not None}


def parts(records: Records, scores: Sequence[Score]) -> Iterator[Part]:
    """Yield the paper's tables of which a benchmark was scored: our models, chance, and then the paper's numbers."""
    ours = [its for its in scores if not its.model.endswith(THEIRS)]
    texts = {(its.model, its.test, its.measure): in_percent(its.its.value) for its in ours}
    texts |= {("chance", its.test, its.measure): in_percent(its.chance) for its in ours}
    for table in OC_CLIP["tables"]:
        titles, *places = zip(*table["columns"], strict=True)
        places = list(zip(*places, strict=True))
        if {its.test for its in ours}.isdisjoint(test for test, _ in places):
            continue
        models = (*dict.fromkeys(its.model for its in ours), "chance")
        rows = [[model, *(texts.get((model, *place), DASH) for place in places)] for model in models]
        rows += [[model + THEIRS, *them, *[DASH] * (len(places) - len(them))] for model, *them in table["rows"]]
        title = f"Beside table {table['number']} of the paper: {table['title']}"
        name, says = f"paper-table-{table['number']}", f"{PAPERS} {table['note']}"
        yield Rows(name, ("model", *titles), rows, says=says, folded=title)
    yield from classification_parts(ours)

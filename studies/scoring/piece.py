"""A piece of an evaluation: a model and what it is scored on, scored once, here or on a cluster. A piece that raises
`UserError` is left out: the reason stays in its folder until the next command tries again, and other pieces go on.
Models with a vocabulary of their own read texts with only the words that they know."""

import time
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_text
from menagerie.generators.benchmarks.benchmark import Benchmark
from menagerie.generators.benchmarks.matrix import MatrixBenchmark, Pool
from menagerie.generators.benchmarks.photographs import PhotographBenchmark
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import plain_word
from menagerie.generators.captions.templates import Caption
from menagerie.models.contract import attempt
from menagerie.models.judges.forms import QuestionForm, make_form
from menagerie.models.judges.judge import Judge
from menagerie.models.library.judged import JudgeSource
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.scorer import Scorer
from menagerie.studies.runs.cell import AnyJob, Report
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import LEFT_OUT, read_result, reason_in, write_result
from menagerie.studies.scoring.models import Model

SCORES = "scores.csv"  # of every record, in a piece's folder
NAMED = 5  # unknown words that a message names
SHOWN = 60  # characters of a text that pages show
NONE_SKIPPED = {"words": 0, "texts": 0, "records": 0}
"""Numbers of different words that were left out, of texts that had such words or were longer than the scorer reads, and
of tests that were left out because no word of a text was left."""


@dataclass(frozen=True)
class Piece(AnyJob, ABC):
    """What an arm of an evaluation does in place of a training run. `job` makes it ready to run."""

    tested: Model
    label: str  # of what the model is scored on
    id: str
    """Hash of the model's weights, and of the content of what it is scored on."""
    steps: int = field()  # number of images; without `field` it would inherit a default
    out: Path = field(default=Path(), kw_only=True)  # folder of the study
    below: str = field(default="cells", kw_only=True)  # the folder in `out` that has a folder for each piece
    device: str = field(default="cpu", kw_only=True)
    threads: int = field(default=0, kw_only=True)
    seed: ClassVar[int] = 0
    kept: ClassVar[tuple[str, ...]] = ()  # the files beside the result whose digests it has
    on: ClassVar[str] = ""  # the key of `label` in results; empty: results have no label

    @property
    def model(self) -> str:
        """The model's name in tables."""
        return self.tested.label

    @property
    def name(self) -> str:
        return f"{self.model} on {self.label}"

    @property
    def folder(self) -> Path:
        return self.out / self.below / self.id

    @property
    def group(self) -> str:
        return self.tested.weights

    def job(self, out: Path) -> "Piece":
        return replace(self, out=out)

    @property
    def problem(self) -> str:
        return reason_in(self.folder, LEFT_OUT)

    @property
    def ended(self) -> bool:
        return read_result(self.folder) is not None or bool(self.problem)

    @property
    def outcome(self) -> str:
        return f"left out: {self.name}: {self.problem}" if self.problem else f"finished {self.name}"

    def run(self, report: Report, release: Callable[[], None]) -> None:
        """Score the piece, or leave it out."""
        import torch

        if self.threads:
            torch.set_num_threads(self.threads)
        done = 0

        def count(images: int) -> None:
            nonlocal done
            done += images
            report(done, "")

        try:
            loaded, began = load_model(self.tested, self.device), time.perf_counter()
            if isinstance(loaded, Judge):
                loaded.begin(count)
            result = {"id": self.id, "model": self.model} | ({self.on: self.label} if self.on else {})
            result |= attempt(self.tested.label, "fails", lambda: self.score(loaded, count))
            if isinstance(loaded, Judge):
                result |= {"judged": loaded.totals(), "answered_by": list(loaded.models)}
            seconds = round(time.perf_counter() - began, 1)
            write_result(self.folder, result | {"seconds": seconds, "provenance": provenance()}, self.kept)
        except UserError as error:
            write_text(self.folder / LEFT_OUT, str(error))

    @abstractmethod
    def score(self, loaded: LoadedScorer | Judge, report: Callable[[int], None]) -> dict[str, Any]:
        """Score everything, and return the result. Files in the folder are written before. `report` receives numbers of
        images. Raises `UserError` if the model fails, or if its scores aren't numbers."""

    def asked(self) -> Iterable[Benchmark]:
        """Return the benchmarks that a judge is asked about."""
        return ()

    @property
    def questions(self) -> int:
        """Number of different questions to a judge, if none was answered before; 0 for other models."""
        if not isinstance(source := self.tested.source, JudgeSource):
            return 0
        form = make_form(source.form, source.options, source.blind)
        return sum(questions_about(form, benchmark) for benchmark in self.asked())


def questions_about(form: QuestionForm, benchmark: Benchmark) -> int:
    """Return the number of different questions about a benchmark; equal images with two numbers count as different."""
    if isinstance(benchmark, MatrixBenchmark):
        return sum(questions_in(form, pool) for pool in benchmark.pools) if form.compares_images else 0
    try:
        form.check(benchmark, benchmark.items)
    except UserError:
        return 0
    every = {one for item in benchmark.items for one in form.comparisons(item)}
    return len({question for one in every for question in form.questions(one)})


def questions_in(form: QuestionForm, pool: Pool) -> int:
    """Return the number of different questions about a pool: each image with each text, and texts alone for a prior."""
    images, texts = len({*pool.images}), len({phrasing.text for text in pool.texts for phrasing in text})
    return texts if form.blind else (images + bool(form.prior)) * texts


def images_needed(test: Benchmark) -> int:
    """Return how many images are read to score a test's items."""
    return len({number for item in test.items for number in item.images})


HELD: dict[tuple[str, str], LoadedScorer | Judge] = {}  # the loaded model, by the hash of its weights and its device


def load_model(model: Model, device: str) -> LoadedScorer | Judge:
    """Load a model, which is kept until another is asked for."""
    if (key := (model.weights, device)) not in HELD:
        HELD.clear()  # before the next one needs the memory
        HELD[key] = open_model(model, device)
    return HELD[key]


def open_model(model: Model, device: str) -> LoadedScorer | Judge:
    """Load a model, and print its warnings, such as that of random weights, as lines."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        loaded = model.source.load(device)
    for message in dict.fromkeys(str(warning.message) for warning in warned if warning.category is UserWarning):
        print(f"note: {message}", flush=True)
    return loaded


def readable_texts(
    bench: PhotographBenchmark, scorer: Scorer, skip: bool, model: str
) -> tuple[PhotographBenchmark, dict[str, int]]:
    """Return the benchmark in a scorer's words, and counts of what is left out. Raises for others unless `skip`."""
    if not (known := set(scorer.texts.words)):  # it reads any text
        return bench, NONE_SKIPPED
    texts = bench.texts
    unknown = Counter(word for text in texts for word in {*words_in(text.text)} - known)
    if unknown and not skip:
        affected = sum(not known.issuperset(words_in(text.text)) for text in texts)
        some = ", ".join(repr(word) for word, _ in unknown.most_common(NAMED))
        raise UserError(
            f"{model} doesn't know {len(unknown)} of the words of {bench.name} ({some}, …), which are in {affected} of "
            f"{len(texts)} texts; --unknown-words skip leaves them out, or choose a model that reads any text"
        )
    new = {text: shorten_text(text, known, scorer.texts.context - 1) for text in texts}
    changed = sum(new[text].text.split() != words_in(text.text) for text in texts)
    made = bench.reword(new)
    matrix = isinstance(bench, MatrixBenchmark)
    before, after = (its.tests().total() if matrix else len(its.items) for its in (bench, made))
    return made, {"words": len(unknown), "texts": changed, "records": before - after}


def words_in(text: str) -> list[str]:
    """Return the words of a text, without capitals and punctuation."""
    return list(filter(None, map(plain_word, text.split())))


def shorten_text(text: Caption, known: set[str], most: int) -> Caption:
    """Return a text with only its first `most` known words, and its graph with only known words."""
    plain = " ".join([word for word in words_in(text.text) if word in known][:most])
    nodes = [" ".join(word for word in words_in(node) if word in known) for node in text.graph.nodes]
    place = {old: new for new, old in enumerate(k for k, node in enumerate(nodes) if node)}
    edges = tuple(
        Edge(edge.predicate, place[edge.subject], place[edge.object])
        for edge in text.graph.edges
        if {edge.subject, edge.object} <= place.keys() and known.issuperset(edge.predicate.split())
    )
    return Caption(plain, SceneGraph(tuple(filter(None, nodes)), edges) if place else SceneGraph((plain,)))


def cut_record(scorer: Scorer | Judge, texts: Sequence[Caption]) -> dict[str, Any]:
    """Return how many texts are longer than the scorer's context, and the first; empty if its reader can't tell."""
    if isinstance(scorer, Judge):
        return {"texts": 0, "of": len(texts)}
    cut = scorer.cut_texts([text.text for text in texts], [text.graph for text in texts])
    if cut is None:
        return {}
    long = [text.text for text, is_cut in zip(texts, cut, strict=True) if is_cut]
    return {"texts": len(long), "of": len(texts), "context": scorer.texts.context, "first": long[0] if long else ""}


def unread_sentence(result: Mapping[str, Any]) -> str:
    """Say which texts of a result weren't read to their end; empty if all were."""
    parts = []
    if not (cut := result["cut"]):
        parts.append("its reader doesn't say which texts it cuts")
    elif cut["texts"]:
        first = cut["first"] if len(cut["first"]) <= SHOWN else f"{cut['first'][:SHOWN]}…"
        text = f"{cut['texts']} of {cut['of']} texts are longer than its {cut['context']} tokens, {first!r} first"
        parts.append(text)
    if short := result.get("skipped", {}).get("texts"):
        parts.append(f"{short} texts were shortened to words that it knows, and to as many as it reads")
    return "; ".join(parts)

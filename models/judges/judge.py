"""Vision-language models as judges: their answers to questions give scores of any benchmark's items, and of pools.
Answers are kept on disk, by the image's pixels, the question, and everything that decides the model's answers."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec
import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.kept_answers import KeptAnswers
from menagerie.envs.core.reading import check_shape
from menagerie.generators.benchmarks.benchmark import Benchmark, Item, Scores
from menagerie.generators.benchmarks.matrix import Pool
from menagerie.models.judges.forms import Comparison, QuestionForm
from menagerie.models.judges.questions import VERSION, Answer, JudgeOptions, Question, Verdict, read_verdict

NAME = 60  # characters of a model's name in its folder's


class AnswerLine(msgspec.Struct):
    """A line of the file."""

    key: str
    answer: Answer


class AnswerStore(KeptAnswers[Answer]):
    """The answers of one model to questions. Refusals are kept; questions without an answer aren't."""

    about, file = "model.json", "answers.jsonl"

    def __init__(self, root: Path, name: str, identity: Mapping[str, Any]) -> None:
        super().__init__(root, re.sub(r"[^\w.-]+", "-", name).strip("-.")[-NAME:], identity)

    def to_line(self, key: str, value: Answer) -> dict[str, Any]:
        return {"key": key, "answer": msgspec.to_builtins(value)}

    def from_line(self, content: Any) -> tuple[str, Answer]:
        line = msgspec.convert(check_shape(content, AnswerLine, self.path), AnswerLine)
        return line.key, line.answer


def pixels_key(picture: UInt8[np.ndarray, "h w 3"] | None) -> str:
    """Hash of an image's pixels, not of a file, whose compression differs between machines; empty for no image."""
    if picture is None:
        return ""
    return hashlib.sha256(repr(picture.shape).encode() + np.ascontiguousarray(picture).tobytes()).hexdigest()


def question_key(question: Question, pixels: str) -> str:
    """Hash of a question about an image with these pixels."""
    every = [VERSION, pixels, question.text, question.words, question.reply]
    return hashlib.sha256(json.dumps(every).encode()).hexdigest()


Picture = UInt8[np.ndarray, "h w 3"]
MOST_PAIRS = 1_000_000  # in a pool
PROBLEMS = ("refused", "unparsable", "cut off", "unanswered")


@runtime_checkable
class Respondent(Protocol):
    """A model that answers questions about images."""

    name: str

    def identity(self) -> Mapping[str, Any]:
        """Everything that decides the model's answers, except the image and the question, as JSON values."""

    def answers(
        self, questions: Sequence[Question], picture: Callable[[int], Picture]
    ) -> Iterator[tuple[Question, Answer]]:
        """Yield each question with its answer, in any order; `picture` gives an image by its number.

        Raises `UserError` if the model can't answer at all.
        """


class Judge:
    """A model asked in one form. Its answers are kept, so that no question is asked twice."""

    def __init__(self, respondent: Respondent, form: QuestionForm, options: JudgeOptions) -> None:
        self.respondent, self.form, self.options = respondent, form, options
        self.begin(lambda images: None)

    @property
    def match_level(self) -> float | None:
        """The score above which the answer is yes; None of forms that only compare."""
        return 0.0 if self.form.name == "yes" else None

    @cached_property
    def store(self) -> AnswerStore:
        """The answers of the model, read from disk when the first is wanted."""
        how = {"side": self.options.side, "largest": self.options.largest}
        return AnswerStore(self.options.answers, self.respondent.name, {**self.respondent.identity(), **how})

    def begin(self, report: Callable[[int], None]) -> None:
        """Reset all counts; `report` is then called with the number of further images that are answered."""
        self.report, self.reported = report, 0
        self.counts: Counter[str] = Counter()
        self.models: dict[str, None] = {}

    def advance(self, images: int) -> None:
        """Report a number of further images, unless it is 0."""
        if images:
            self.report(int(images))
            self.reported += images

    def totals(self) -> dict[str, int]:
        """Numbers of items, questions, answers of each kind, and tokens since `begin`."""
        return dict(self.counts)

    def scores(self, benchmark: Benchmark, items: Sequence[Item]) -> list[Scores]:
        """Return the scores (k, m) of each item. Those of an item that lacks a verdict are NaN, and it is counted."""
        self.form.check(benchmark, items)
        verdicts = self.verdicts(benchmark, [one for item in items for one in self.form.comparisons(item)])
        found = [self.form.scores(item, verdicts) for item in items]
        self.counts.update(items=len(items), undecided=sum(scores is None for scores in found))
        silent = (np.full((len(item.images), len(item.texts)), np.nan) for item in items)
        return [nothing if scores is None else scores for scores, nothing in zip(found, silent, strict=True)]

    def pool(self, benchmark: Benchmark, pool: Pool) -> Float[np.ndarray, "n m"]:
        """Return the score of every image with every text, as float32: the mean over a text's phrasings. That of a pair
        without a verdict is NaN, and it is counted. So is a pair whose verdict has no log-probabilities, if others have
        some."""
        if not self.form.compares_images:
            raise UserError(f"choices are between a few texts, not all of {len(pool.texts)}; ask --judge.forms yes")
        texts = [[phrasing.text for phrasing in text] for text in pool.texts]
        if (pairs := len(pool.images) * sum(map(len, texts))) > MOST_PAIRS:
            raise UserError(
                f"{pairs} pairs of images and texts are a question each, and more than {MOST_PAIRS} aren't asked"
            )
        every = [Comparison(i, (phrasing,)) for i in dict.fromkeys(pool.images) for text in texts for phrasing in text]
        verdicts = self.verdicts(benchmark, every)
        graded = any(verdict.graded for verdict in verdicts.values() if verdict.value is not None)
        lost = {one for one, verdict in verdicts.items() if verdict.value is None or verdict.graded < graded}
        values = {one: np.nan if one in lost else verdict.value for one, verdict in verdicts.items()}
        out = np.array(
            [[np.mean([values[Comparison(i, (one,))] for one in text]) for text in texts] for i in pool.images]
        )
        self.counts.update(items=out.size, undecided=int(np.isnan(out).sum()))
        return out.astype(np.float32)

    def verdicts(self, benchmark: Benchmark, comparisons: Sequence[Comparison]) -> dict[Comparison, Verdict]:
        """The verdict of each comparison."""
        questions = {comparison: self.form.questions(comparison) for comparison in comparisons}
        before = self.reported
        answers = self.find_answers(benchmark, list(dict.fromkeys(q for its in questions.values() for q in its)))
        self.advance(len({comparison.image for comparison in comparisons}) - (self.reported - before))
        found = {question: read_verdict(question, answer) for question, answer in answers.items()}
        self.count(answers, found)
        if not self.form.compares_images:
            places = [[found[question].value for question in its] for its in questions.values()]
            both = [(there, back) for there, back in places if there is not None and back is not None]
            self.counts.update(choices=len(both), by_place=sum(there * back > 0 for there, back in both))
        return {one: self.form.verdict([found[question] for question in its]) for one, its in questions.items()}

    def find_answers(self, benchmark: Benchmark, questions: Sequence[Question]) -> dict[Question, Answer]:
        """Return the answers to questions: kept ones, and new ones of the model, which are then kept. Raises for
        questions without an answer, unless the options allow them."""
        pixels = {i: "" if i is None else pixels_key(benchmark.picture(i)) for i in {q.image for q in questions}}
        keys = {question: question_key(question, pixels[question.image]) for question in questions}
        self.store.read()  # what another process has asked by now
        missing = {key: question for question, key in keys.items() if not self.store.get(key)}
        self.counts.update(questions=len(questions), kept=sum(key not in missing for key in keys.values()))
        left = Counter(question.image for question in missing.values())

        def picture(number: int) -> Picture:
            return resize_picture(benchmark.picture(number), self.options.side, self.options.largest)

        lost: dict[str, Answer] = {}
        for question, answer in self.respondent.answers(list(missing.values()), picture) if missing else ():
            if answer.unanswered:
                lost[keys[question]] = answer
            else:
                self.store.keep(keys[question], answer)
            left[question.image] -= 1
            self.advance(question.image is not None and not left[question.image])
        if lost and self.options.unanswered == "refuse":
            raise UserError(
                f"{len(lost)} of {len(questions)} questions have no answer ({next(iter(lost.values())).unanswered}); "
                "run it again, which asks these alone, or count them as ties by --judge.unanswered tie"
            )
        return {question: lost.get(key) or self.store.get(key) for question, key in keys.items()}

    def count(self, answers: Mapping[Question, Answer], verdicts: Mapping[Question, Verdict]) -> None:
        """Add answers and verdicts to the counts that reports show."""
        for verdict in verdicts.values():
            self.counts.update({verdict.problem: 1} if verdict.problem else {})
            self.counts.update(ungraded=int(not verdict.graded), bounded=int(verdict.bounded))
        for answer in answers.values():
            self.counts.update(tokens_in=answer.tokens_in, tokens_out=answer.tokens_out)
            self.models |= {answer.model: None} if answer.model else {}


def resize_picture(picture: Picture, side: int, largest: int) -> UInt8[np.ndarray, "new_h new_w 3"]:
    """Enlarge a picture by a whole factor, repeating its pixels, until its shorter side is at least `side`, as far as
    the longer side stays within `largest`. Reduce one whose longer side is beyond `largest` to that."""
    height, width = picture.shape[:2]
    if max(height, width) > largest:
        scale = largest / max(height, width)
        size = max(1, round(width * scale)), max(1, round(height * scale))
        return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BICUBIC))
    factor = min(-(-side // min(height, width)), largest // max(height, width))
    return picture.repeat(factor, 0).repeat(factor, 1) if factor > 1 else picture

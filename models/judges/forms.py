"""The forms of questions: which ones are asked about an item's images and texts, and how they give its scores."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.benchmark import FOUR_WAY, Benchmark, Item, Scores
from menagerie.models.judges import questions as ask
from menagerie.models.judges.questions import FormName, JudgeOptions, Question, Verdict

MOST_COMPARED = 8  # texts of an item, whose pairs are all asked for


class Comparison(NamedTuple):
    """What one verdict is about: an image with a text, or with two texts between which the model chooses."""

    image: int
    texts: tuple[str, ...]


@dataclass(frozen=True)
class QuestionForm(ABC):
    """A form of questions. If it is `blind`, none of them has an image."""

    name: ClassVar[FormName]
    compares_images: ClassVar[bool] = True
    """Whether scores of two images can be compared."""
    blind: bool = False
    prior: float = 0.0
    """Weight of a text's log-probability without the image, which is subtracted from its likelihood."""

    def check(self, benchmark: Benchmark, items: Sequence[Item]) -> None:
        """Raise for items that this form can't judge. By default a form can judge every item."""
        return

    def comparisons(self, item: Item) -> Iterator[Comparison]:
        """Yield the comparisons that an item's scores need."""
        return (Comparison(image, (text.text,)) for image in item.images for text in item.texts)

    @abstractmethod
    def questions(self, comparison: Comparison) -> tuple[Question, ...]:
        """The questions of a comparison."""

    def verdict(self, found: Sequence[Verdict]) -> Verdict:
        """The verdict of a comparison, from the verdicts in the answers to its questions."""
        return found[0]

    def scores(self, item: Item, verdicts: Mapping[Comparison, Verdict]) -> Scores | None:
        """The scores of an item's images with its texts; None if a verdict is missing."""
        its = [verdicts[comparison] for comparison in self.comparisons(item)]
        values = comparable_values(its)
        return None if values is None else np.reshape(values, (len(item.images), len(item.texts)))

    def image_shown(self, image: int) -> int | None:
        """Return the image that a question shows; None if the form is blind."""
        return None if self.blind else image


class YesForm(QuestionForm):
    """log P(yes) - log P(no), for each image and text."""

    name = "yes"

    def questions(self, comparison: Comparison) -> tuple[Question, ...]:
        wording = ask.BLIND_YES if self.blind else ask.YES
        return (Question(self.image_shown(comparison.image), wording.format(*comparison.texts), ask.YES_NO),)


class Likelihood(QuestionForm):
    """Mean log-probability of the text as the model's own answer, minus `prior` times that without the image."""

    name = "likelihood"

    def questions(self, comparison: Comparison) -> tuple[Question, ...]:
        (text,) = comparison.texts
        alone = Question(None, ask.BLIND_DESCRIBE, reply=text)
        if self.blind:
            return (alone,)
        return (Question(comparison.image, ask.DESCRIBE, reply=text), *[alone] * bool(self.prior))

    def verdict(self, found: Sequence[Verdict]) -> Verdict:
        first, *rest = found
        if not rest or None in (first.value, rest[0].value):
            return next((each for each in found if each.value is None), first)
        return Verdict(first.value - self.prior * rest[0].value)


class Choice(QuestionForm):
    """Choice between two texts. It is asked in both orders, and half the difference of the two values counts, so that a
    preference for the text named first or second cancels. If nothing is left for any text of an image, as for a model
    that always says A, the image has no scores (NaN).

    With more than two texts each pair is asked. Only scores of one image can be compared with each other.
    """

    name = "choice"
    compares_images = False

    def check(self, benchmark: Benchmark, items: Sequence[Item]) -> None:
        for item in items:
            if not 2 <= len(item.texts) <= MOST_COMPARED:
                what = f"{len(item.texts)} texts of {item.task!r}"
                raise UserError(f"choices are between 2 to {MOST_COMPARED} texts, not {what}; ask --judge.forms yes")
            if item.task != FOUR_WAY and compares_images(benchmark, item):
                raise UserError(
                    f"choices are between texts of one image, and {item.task!r} compares images; ask --judge.forms yes"
                )

    def comparisons(self, item: Item) -> Iterator[Comparison]:
        pairs = combinations(sorted({text.text for text in item.texts}), 2)
        return (Comparison(image, pair) for pair in pairs for image in item.images)

    def questions(self, comparison: Comparison) -> tuple[Question, ...]:
        wording, image = ask.BLIND_CHOICE if self.blind else ask.CHOICE, self.image_shown(comparison.image)
        orders = comparison.texts, comparison.texts[::-1]
        return tuple(Question(image, wording.format(*order), ask.LETTERS) for order in orders)

    def verdict(self, found: Sequence[Verdict]) -> Verdict:
        values = comparable_values(found)
        if values is None:
            return next(each for each in found if each.value is None)
        return Verdict((values[0] - values[1]) / 2, graded=all(each.graded for each in found))

    def scores(self, item: Item, verdicts: Mapping[Comparison, Verdict]) -> Scores | None:
        every = list(self.comparisons(item))
        values = comparable_values([verdicts[comparison] for comparison in every])
        if values is None:
            return None
        out = np.zeros((len(item.images), len(item.texts)))
        for (image, (one, other)), value in zip(every, values, strict=True):
            for column, text in enumerate(item.texts):
                out[item.images.index(image), column] += value / 2 * ((text.text == one) - (text.text == other))
        out[~out.any(axis=1)] = np.nan
        return out


def comparable_values(verdicts: Sequence[Verdict]) -> list[float] | None:
    """The values of verdicts that are compared with each other; None if one is missing. If one has no
    log-probabilities, only the signs of all values count."""
    if any(each.value is None for each in verdicts):
        return None
    values = [float(each.value) for each in verdicts]
    return values if all(each.graded for each in verdicts) else [float(np.sign(value)) for value in values]


def compares_images(benchmark: Benchmark, item: Item) -> bool:
    """Whether an item's outcome changes if all scores of one of its images are lower: then it compares images."""
    if len(item.images) == 1:
        return False
    right = np.zeros((len(item.images), len(item.texts)))
    for image in range(len(item.images)):
        right[image, item.own(image)] = 1
    lower = right - 10 * (np.arange(len(item.images)) == 0)[:, None]
    return benchmark.outcome(item, right) != benchmark.outcome(item, lower)


FORMS: Mapping[FormName, type[QuestionForm]] = {kind.name: kind for kind in (YesForm, Choice, Likelihood)}


def make_form(name: FormName, options: JudgeOptions, blind: bool) -> QuestionForm:
    """Make a form by its name; only likelihood with the image has a prior."""
    return FORMS[name](blind, options.prior if name == "likelihood" and not blind else 0.0)

"""The base of all tests of scorers: items of images and texts, and which texts belong with which image.

Benchmarks of real photographs and tests of our own scenes are scored by the same code (`score_items` in
`menagerie.models.evaluation.scoring`; `score_pool` for a `MatrixBenchmark`) and reported alike: by the benchmark's
official rule, by a tie-neutral accuracy, and by the share of items whose scores tie.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor

from menagerie.envs.core.identity import generator
from menagerie.generators.captions.templates import Caption


class Item(NamedTuple):
    """k images and m texts. Image i belongs with the texts `own(i)`, usually only text i; others are false."""

    record: str
    """Name of its record. Record and task identify an item in every run, so that runs can be paired."""
    task: str
    """The task or category; results are reported per task."""
    images: tuple[int, ...]
    """Indices into the benchmark's images."""
    texts: tuple[Caption, ...]
    cluster: str = ""
    """A name shared by records that resemble each other: a bootstrap draws them together."""
    true: int = 1
    """Number of texts that belong with each image: those of image i start at text i."""
    truth: int = 0
    """Where the true text of one image, or the true image of one text, stands in the file; here it is the first."""

    def own(self, image: int) -> range:
        """The indices of the item's texts that belong with its image number `image`."""
        return range(image, min(image + self.true, len(self.texts)))


# Of k images with m texts, which differ between items of one list: the underscores say that the names bind nothing.
# The row of an image is NaN if a judge says nothing about its texts.
Scores = Float[np.ndarray, "_k _m"]
SEED = 0  # seed of the draws that break ties


class Outcome(NamedTuple):
    """The result of scoring one item."""

    official: float
    """Points by the benchmark's rule, 0 to 1."""
    neutral: float
    """Probability of being right if ties are broken at random: 1/2 if a true text and one false one tie."""
    tied: bool
    """Whether a score that decides the outcome equals another."""


class Benchmark(ABC):
    """Images, and items that test scorers on them."""

    name: str
    items: Sequence[Item]
    logged_task: str = "swap"
    """Task whose validation score is logged during training."""

    @property
    def tasks(self) -> Sequence[str]:
        """The names of all tasks in the order of reports, including tasks without items."""
        return list(dict.fromkeys(item.task for item in self.items))

    @property
    def texts(self) -> Sequence[Caption]:
        """All texts of the items, without duplicates."""
        return list(dict.fromkeys(text for item in self.items for text in item.texts))

    @abstractmethod
    def images(self, numbers: Sequence[int]) -> UInt8[Tensor, "n 3 h w"]:
        """The images with these indices, all of one size."""

    def picture(self, number: int) -> UInt8[np.ndarray, "h w 3"]:
        """An image as it is, neither cropped nor scaled for a tower."""
        return self.images([number])[0].permute(1, 2, 0).numpy()

    def blocks(self, numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
        """Yield batches of image indices to read and encode together, at most `size` each."""
        return (numbers[start : start + size] for start in range(0, len(numbers), size))

    def outcome(self, item: Item, scores: Scores) -> Outcome:
        """Score an item. The default is the rule of most benchmarks; some override it."""
        return texts_chosen(scores, item.true)


def texts_chosen(scores: Scores, true: int = 1) -> Outcome:
    """Check whether each image's own texts, `true` of them from text i on, all score strictly higher than all others.
    For two images this is Winoground's text score; for one image it is a choice between the texts."""
    own = [slice(image, image + true) for image in range(len(scores))]
    return all_right([true_above(row[its], np.delete(row, its)) for row, its in zip(scores, own, strict=True)])


def true_above(true: Float[np.ndarray, " t"], false: Float[np.ndarray, " f"]) -> Outcome:
    """Check whether all true scores are strictly higher than all false ones."""
    level, highest = true.min(), false.max(initial=-math.inf)
    ties = int((true == level).sum()), int((false == level).sum())
    neutral = 0.0 if highest > level else 1 / math.comb(sum(ties), ties[0])
    return Outcome(float(level > highest), neutral, bool(highest == level))


def all_right(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of several comparisons together, which is right if all are."""
    official, neutral, tied = zip(*outcomes, strict=True)
    return Outcome(math.prod(official), math.prod(neutral), any(tied))


def images_chosen(scores: Scores) -> Outcome:
    """Check whether each text's own image scores strictly higher than all other images (Winoground's image score)."""
    k = len(scores)
    return texts_chosen(np.ascontiguousarray(scores[:, :k].T))


def group_chosen(scores: Float[np.ndarray, "2 2"]) -> Outcome:
    """Check for two images and two texts whether `texts_chosen` and `images_chosen` hold (Winoground's group score):
    both matching scores are above both others. Chance is 1/6, not 1/16, as the four comparisons share their scores."""
    texts, images = texts_chosen(scores), images_chosen(scores)
    group = true_above(scores.diagonal(), scores[:, ::-1].diagonal())
    return group._replace(tied=texts.tied or images.tied)


def first_of_best(scores: Scores, truth: int = 0) -> Outcome:
    """Like `texts_chosen`, but officially the first of equal scores wins, as with `argmax`. The true text of a single
    image is the first of the scores, and number `truth` in the file: from 0 on, it loses ties with those before it."""
    outcome = texts_chosen(scores)
    before = scores[0, 1 : truth + 1]
    first = (scores.argmax(1) == np.arange(len(scores))).all() and not (before == scores[0, 0]).any()
    return outcome._replace(official=float(first))


def first_of_shuffled(scores: Scores, record: str) -> Outcome:
    """Like `texts_chosen` for one image, but officially ties are broken at random: the texts are shuffled, with the
    record as seed, and the first of equal scores wins."""
    outcome = texts_chosen(scores)
    if not outcome.tied:
        return outcome
    order = generator(SEED, "order of texts", record).permutation(scores.shape[1])
    return outcome._replace(official=float(order[scores[0, order].argmax()] == 0))


def apply_rule(rule: Callable[[Scores], Outcome], scores: Scores) -> Outcome:
    """Apply a rule. Texts of an image without scores (NaN) tie, and such ties are broken at random, officially too."""
    silent = np.isnan(scores)
    if not silent.any():
        return rule(scores)
    outcome = rule(np.where(silent, 0.0, scores))
    return outcome._replace(official=outcome.neutral)


# Task of the items with two images and two texts, each true of one image; and the rules by which they are scored.
FOUR_WAY = "four-way"
FOUR_WAY_RULES: Mapping[str, Callable[[Scores], Outcome]] = {
    "text": texts_chosen,
    "image": images_chosen,
    "group": group_chosen,
}


def four_way_rules(compares_images: bool) -> Sequence[str]:
    """The rules for four-way items: of a model whose scores of two images can't be compared, the texts' alone."""
    return tuple(FOUR_WAY_RULES) if compares_images else ("text",)


class ScoredItem(NamedTuple):
    """A scored item."""

    item: Item
    scores: Scores
    outcome: Outcome


class Summary(NamedTuple):
    """Means over the items of a task; None if it has no items."""

    official: float | None
    neutral: float | None
    tie_rate: float | None
    n: int


def summarise(outcomes: Sequence[Outcome]) -> Summary:
    """Average the outcomes; all means are None without outcomes."""
    if not outcomes:
        return Summary(None, None, None, 0)
    columns = (np.array(column, np.float64).mean() for column in zip(*outcomes, strict=True))
    return Summary(*map(float, columns), len(outcomes))

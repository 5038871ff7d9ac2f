"""Defines what every test of a scorer has: items of some images and some texts, and which of them belong together.

A benchmark of real photographs and a test of our own scenes are scored by the same code
(`menagerie.models.evaluation.scoring.score_items`) and reported in the same way: the benchmark's official rule, a
tie-neutral accuracy, and how often scores tie.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from menagerie.envs.core.identity import generator
from menagerie.generators.captions.templates import Caption


class Item(NamedTuple):
    """k images and m texts: image i belongs with its `own` texts, text i as a rule; others belong with none."""

    record: str
    """The name of the record that the item was made of. It is the same in every run: predictions of two runs are
    paired by it."""
    group: str
    """The task or category; results are reported for each group."""
    images: tuple[int, ...]
    """Numbers of the benchmark's images."""
    texts: tuple[Caption, ...]
    cluster: str = ""
    """Records of one cluster resemble each other: a bootstrap draws them together."""
    true: int = 1
    """How many texts belong with image i: text i and the texts that follow it."""

    def own(self, image: int) -> range:
        """The places of the texts that belong with the image at a place."""
        return range(image, image + self.true)


Scores = Float[np.ndarray, "k m"]
SEED = 0  # of ties that are drawn


class Outcome(NamedTuple):
    """The result of scoring one item."""

    official: float
    """Points by the benchmark's rule, 0 to 1."""
    neutral: float
    """Chance to be right if ties are broken at random: 1/2 where two scores are the highest."""
    tied: bool
    """Whether a score that decides equals another."""


class Benchmark(ABC):
    """A set of items over some images."""

    name: str
    items: Sequence[Item]
    looked_at: str = "swap"
    """The group that a run's looks at validation score."""

    @property
    def groups(self) -> Sequence[str]:
        """The groups of items, in the order of reports; one that is known may have none."""
        return list(dict.fromkeys(item.group for item in self.items))

    @property
    def texts(self) -> Sequence[Caption]:
        """All texts, each once."""
        return list(dict.fromkeys(text for item in self.items for text in item.texts))

    @abstractmethod
    def images(self, numbers: Sequence[int]) -> UInt8[Tensor, "n 3 h w"]:
        """The images of these numbers, all of one size."""

    def blocks(self, numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
        """Images that are read and encoded together, `size` at a time."""
        return (numbers[start : start + size] for start in range(0, len(numbers), size))

    def outcome(self, item: Item, scores: Scores) -> Outcome:
        """Score an item, by the rule of most benchmarks unless one has its own."""
        return texts_chosen(scores)


def texts_chosen(scores: Scores) -> Outcome:
    """Score whether each image prefers its text to all others, strictly (Winoground's text score; with one image a
    plain choice)."""
    k = len(scores)
    matching = scores[np.arange(k), np.arange(k)]
    best = scores.max(1)
    winners = (scores == best[:, None]).sum(1)
    right = matching == best
    return Outcome(
        official=float((right & (winners == 1)).all()),
        neutral=float(np.prod(np.where(right, 1 / winners, 0.0))),
        tied=bool((right & (winners > 1)).any()),
    )


def images_chosen(scores: Scores) -> Outcome:
    """Score whether each text prefers its image to all others, strictly (Winoground's image score)."""
    k = len(scores)
    return texts_chosen(np.ascontiguousarray(scores[:, :k].T))


def group_chosen(scores: Float[np.ndarray, "2 2"]) -> Outcome:
    """Score whether both `texts_chosen` and `images_chosen` hold for two images and two texts (Winoground's group
    score): both matching scores are above both others.

    Chance is 1/6, not 1/16: the four comparisons share their scores.
    """
    texts, images = texts_chosen(scores), images_chosen(scores)
    matching, crossed = scores.diagonal(), scores[:, ::-1].diagonal()
    level = matching.min()
    orders = math.comb(int((matching == level).sum() + (crossed == level).sum()), int((matching == level).sum()))
    neutral = 0.0 if crossed.max() > level else 1 / orders
    return Outcome(texts.official * images.official, neutral, texts.tied or images.tied)


def first_of_best(scores: Scores) -> Outcome:
    """Score an item as `texts_chosen` does, but officially the first of equal scores counts: the rule of `argmax`
    with the true text first."""
    outcome = texts_chosen(scores)
    return outcome._replace(official=float((scores.argmax(1) == np.arange(len(scores))).all()))


def first_of_drawn(scores: Scores, record: str) -> Outcome:
    """Score an item of one image as `texts_chosen` does, but officially ties are broken at random: the texts are
    shuffled, here with the record as seed, and the first of equal scores counts."""
    outcome = texts_chosen(scores)
    if not outcome.tied:
        return outcome
    order = generator(SEED, "order of texts", record).permutation(scores.shape[1])
    return outcome._replace(official=float(order[scores[0, order].argmax()] == 0))


# The group of items of two images and two texts, each true of one, and their rules.
QUAD = "quad"
QUADS: Mapping[str, Callable[[Scores], Outcome]] = {
    "text": texts_chosen,
    "image": images_chosen,
    "group": group_chosen,
}


class Result(NamedTuple):
    """An item that was scored."""

    item: Item
    scores: Scores
    outcome: Outcome


class Summary(NamedTuple):
    """The outcomes of one group; None where it has no items."""

    official: float | None
    neutral: float | None
    tie_rate: float | None
    n: int


def summarise(outcomes: Sequence[Outcome]) -> Summary:
    """Means over items."""
    if not outcomes:
        return Summary(None, None, None, 0)
    columns = (np.array(column, np.float64).mean() for column in zip(*outcomes, strict=True))
    return Summary(*map(float, columns), len(outcomes))


def right(outcomes: Sequence[Outcome]) -> Bool[np.ndarray, " n"]:
    """Whether each item is right by the official rule."""
    return np.array([outcome.official == 1 for outcome in outcomes], bool)

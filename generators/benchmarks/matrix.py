"""Benchmarks that compare all images with all texts: retrieval, and classification by the names of classes.

Scores are a matrix for each `Pool`, one row an image, one column a text. An image asks for its texts, a text for its
image: a query is right where one of the true candidates is among the best k. Harnesses take the best k by
`torch.topk`, whose order of equal scores is open; here officially the first in the file's order is ahead.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64

from menagerie.generators.benchmarks.benchmark import Item, Outcome, Result, Summary
from menagerie.generators.benchmarks.photographs import PhotographSet, Record, of_groups
from menagerie.generators.captions.templates import Caption


class Pool(NamedTuple):
    """Images and texts that are candidates of one another."""

    name: str
    """Empty where the benchmark has one alone."""
    records: tuple[Record, ...]
    """The record that each image belongs to."""
    images: tuple[int, ...]
    """Numbers of the benchmark's images."""
    texts: tuple[tuple[Caption, ...], ...]
    """The phrasings of each text: one, or several whose codes are averaged."""
    pairs: tuple[tuple[int, int], ...]
    """Places of an image and a text that belong together."""


class Measure(NamedTuple):
    """A recall: the share of queries whose answer is among the best k candidates."""

    name: str
    """ "I2T R@5"."""
    of_images: bool
    """Whether images ask for texts, else texts for images."""
    k: int


class Answer(NamedTuple):
    """How the candidates of a query are ranked."""

    true: int
    """The best true candidate, the first of equals."""
    false: int
    """The best false one."""
    above: int
    """False ones with a higher score than the best true one."""
    level: tuple[int, int]
    """False and true ones with the score of the best true one."""
    ahead: int
    """How many of the false candidates with that score stand before the first true one."""


def answer(scores: Float[np.ndarray, " m"], true: Int64[np.ndarray, " t"]) -> Answer:
    """Rank candidates by their scores; both true and false ones are needed."""
    false = np.ones(len(scores), bool)
    false[true] = False
    best = scores[true].max()
    first = int(true[scores[true] == best].min())
    level = false & (scores == best)
    return Answer(
        true=first,
        false=int(np.where(false, scores, -np.inf).argmax()),
        above=int((false & (scores > best)).sum()),
        level=(int(level.sum()), int((scores[true] == best).sum())),
        ahead=int(level[:first].sum()),
    )


def among_best(ranked: Answer, k: int) -> Outcome:
    """Whether a true candidate is among the best k."""
    false, true = ranked.level
    places = max(k - ranked.above, 0)  # left for the candidates on the level of the best true one
    wrong = math.prod((false - i) / (false + true - i) for i in range(min(places, false + 1)))
    return Outcome(float(ranked.above + ranked.ahead < k), 1 - wrong, 0 < wrong < 1)


class MatrixBenchmark(PhotographSet):
    """Pools of images and texts. It has no items: its tests are the queries of `results`."""

    items = ()
    pools: Sequence[Pool] = ()
    measures: Sequence[Measure] = ()

    @property
    def texts(self) -> Sequence[Caption]:
        return list(dict.fromkeys(phrasing for pool in self.pools for text in pool.texts for phrasing in text))

    def measures_of(self, pool: Pool) -> Sequence[Measure]:
        """The measures to report for a pool; most benchmarks report the same ones for every pool."""
        return self.measures

    def queries(self, pool: Pool, measure: Measure) -> int:
        """The number of queries of a measure."""
        return len({pair[0 if measure.of_images else 1] for pair in pool.pairs})

    def tests(self) -> Counter[str]:
        return Counter({group_of(p.name, m): self.queries(p, m) for p in self.pools for m in self.measures_of(p)})

    def untested(self) -> Counter[str]:
        """Queries by group that lack their images."""
        lost: Counter[str] = Counter()
        measures = {pool.name: self.measures_of(pool) for pool in self.pools}
        for record in self.dropped:
            for measure in measures[record.group]:
                lost[group_of(record.group, measure)] += 1 if measure.of_images else len(record.texts)
        return lost

    def content(self) -> Iterator[str]:
        """Yield all that decides a result, as any benchmark does, and all texts, because some belong to no record."""
        yield from super().content()
        yield from (repr(text.text) for text in self.texts)

    def reworded(self, texts: Mapping[Caption, Caption]) -> "MatrixBenchmark":
        """The same with other texts; those of which no word is left are gone, and with them queries without answer."""
        made = copy(self)
        made.pools = [reworded(pool, texts) for pool in self.pools]
        return made

    def results(self, pool: Pool, scores: Float[np.ndarray, "n m"]) -> Iterator[Result]:
        """Every query of a pool under every measure: the image or text that asks, with the best true and the best false
        candidate and their scores."""
        for of_images in (True, False):
            measures = [measure for measure in self.measures_of(pool) if measure.of_images == of_images]
            rows = scores if of_images else scores.T
            for query, true in answers_of(pool, of_images).items() if measures else ():
                row = np.ascontiguousarray(rows[query])
                ranked = answer(row, true)
                item = self.item(pool, of_images, query, ranked)
                shown = row[[ranked.true, ranked.false]].reshape((1, 2) if of_images else (2, 1))
                for measure in measures:
                    outcome = among_best(ranked, measure.k)
                    yield Result(item._replace(group=group_of(pool.name, measure)), shown, outcome)

    def item(self, pool: Pool, of_images: bool, query: int, ranked: Answer) -> Item:
        """A query with its best candidates."""
        if of_images:
            record = pool.records[query]
            texts = tuple(pool.texts[place][0] for place in (ranked.true, ranked.false))
            return Item(record.name, "", (pool.images[query],), texts, record.cluster or record.name)
        images = tuple(pool.images[place] for place in (ranked.true, ranked.false))
        return Item(f"text {query}", "", images, (pool.texts[query][0],), pool.records[ranked.true].name)

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        return of_groups(items, outcomes)


def group_of(pool: str, measure: Measure) -> str:
    """ "imagenet1k acc1"."""
    return f"{pool} {measure.name}".strip()


def answers_of(pool: Pool, of_images: bool) -> dict[int, Int64[np.ndarray, " t"]]:
    """The true candidates of each query that has any."""
    answers: dict[int, list[int]] = {}
    for pair in pool.pairs:
        query, true = pair if of_images else pair[::-1]
        answers.setdefault(query, []).append(true)
    return {query: np.array(true, np.int64) for query, true in sorted(answers.items())}


def reworded(pool: Pool, texts: Mapping[Caption, Caption]) -> Pool:
    """A pool with other texts; those that have no phrasing left are gone."""
    new = [tuple(texts[phrasing] for phrasing in text if texts[phrasing].text) for text in pool.texts]
    places = {old: place for place, old in enumerate(old for old, text in enumerate(new) if text)}
    pairs = tuple((image, places[text]) for image, text in pool.pairs if text in places)
    return pool._replace(texts=tuple(filter(None, new)), pairs=pairs)

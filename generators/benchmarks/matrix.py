"""Benchmarks that compare all images with all texts: retrieval, and classification by class names.

The scores of a `Pool` are a matrix with a row per image and a column per text. A query is an image that looks for its
texts, or a text that looks for its images; it is right if a true candidate is among the best k. Other harnesses use
`torch.topk`, which leaves the order of equal scores open; officially, here, the first in the file's order wins.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64

from menagerie.generators.benchmarks.benchmark import Item, Outcome, ScoredItem
from menagerie.generators.benchmarks.photographs import PhotographBenchmark, Record
from menagerie.generators.captions.templates import Caption


class Pool(NamedTuple):
    """Images and texts that are candidates for each other."""

    name: str
    """Name of the pool; empty if the benchmark has only one."""
    records: tuple[Record, ...]
    """For each image, its record."""
    images: tuple[int, ...]
    """Indices into the benchmark's images."""
    texts: tuple[tuple[Caption, ...], ...]
    """For each text, its phrasings; if it has several, their embeddings or their scores are averaged."""
    pairs: tuple[tuple[int, int], ...]
    """Each image and text that belong together, by their indices in the pool."""


class Recall(NamedTuple):
    """A recall: the share of queries with a true candidate among the best k."""

    name: str
    """Name in reports, such as "I2T R@5"."""
    of_images: bool
    """Whether queries are images and candidates texts; else the reverse."""
    k: int


class Ranking(NamedTuple):
    """The ranking of a query's candidates."""

    true: int
    """Index of the best true candidate, the first of equal ones."""
    false: int
    """Index of the best false candidate."""
    above: int
    """Number of false candidates that score higher than the best true one."""
    tied: tuple[int, int]
    """Numbers of false and of true candidates whose score equals that of the best true one."""
    ahead: int
    """Number of false candidates that tie with the candidate `true` and come before it."""


def rank_candidates(scores: Float[np.ndarray, " m"], true: Int64[np.ndarray, " t"]) -> Ranking:
    """Rank candidates by their scores; there must be true and false ones."""
    false = np.ones(len(scores), bool)
    false[true] = False
    best = scores[true].max()
    first = int(true[scores[true] == best].min())
    equal = false & (scores == best)
    return Ranking(
        true=first,
        false=int(np.where(false, scores, -np.inf).argmax()),
        above=int((false & (scores > best)).sum()),
        tied=(int(equal.sum()), int((scores[true] == best).sum())),
        ahead=int(equal[:first].sum()),
    )


def is_among_best(ranked: Ranking, k: int) -> Outcome:
    """Whether a true candidate is among the best k."""
    false, true = ranked.tied
    places = max(k - ranked.above, 0)  # places left for candidates that tie with the best true one
    wrong = math.prod((false - i) / (false + true - i) for i in range(min(places, false + 1)))
    return Outcome(float(ranked.above + ranked.ahead < k), 1 - wrong, 0 < wrong < 1)


class MatrixBenchmark(PhotographBenchmark):
    """Pools of images and texts. It has no items: its tests are the queries that `results` yields."""

    items = ()
    figures = ()
    pools: Sequence[Pool] = ()
    measures: Sequence[Recall] = ()

    @property
    def texts(self) -> Sequence[Caption]:
        return list(dict.fromkeys(phrasing for pool in self.pools for text in pool.texts for phrasing in text))

    def measures_of(self, pool: Pool) -> Sequence[Recall]:
        """The measures to report for a pool; most benchmarks report the same for every pool."""
        return self.measures

    def tests(self) -> Counter[str]:
        """By task, the number of queries."""
        measures = [(pool, measure) for pool in self.pools for measure in self.measures_of(pool)]
        return Counter({task_of(p.name, m): len({pair[not m.of_images] for pair in p.pairs}) for p, m in measures})

    def untested(self) -> Counter[str]:
        """By task, the number of queries whose images are missing."""
        lost: Counter[str] = Counter()
        measures = {pool.name: self.measures_of(pool) for pool in self.pools}
        for record in self.dropped:
            for measure in measures[record.task]:
                lost[task_of(record.task, measure)] += 1 if measure.of_images else len(record.texts)
        return lost

    def content(self) -> Iterator[str]:
        """Yield everything that decides a result: what other benchmarks yield, and all texts of the pools."""
        yield from super().content()
        yield from (repr(text.text) for text in self.texts)

    def reword(self, texts: Mapping[Caption, Caption]) -> "MatrixBenchmark":
        """A copy in which `texts` maps each text to another, without empty texts and queries without a true one."""
        made = copy(self)
        made.pools = [reword_pool(pool, texts) for pool in self.pools]
        return made

    def results(
        self, pool: Pool, scores: Float[np.ndarray, "n m"], by_text: Float[np.ndarray, "n m"] | None = None
    ) -> Iterator[ScoredItem]:
        """Yield the result of every query of a pool under every measure; its item has the query, the best true and the
        best false candidate. If `by_text` is given, texts rank images by these scores."""
        for of_images in (True, False):
            measures = [measure for measure in self.measures_of(pool) if measure.of_images == of_images]
            rows = scores if of_images else (scores if by_text is None else by_text).T
            for query, true in true_candidates(pool, of_images).items() if measures else ():
                row = np.ascontiguousarray(rows[query])
                ranked = rank_candidates(row, true)
                item = self.item(pool, of_images, query, ranked)
                shown = row[[ranked.true, ranked.false]].reshape((1, 2) if of_images else (2, 1))
                for measure in measures:
                    outcome = is_among_best(ranked, measure.k)
                    yield ScoredItem(item._replace(task=task_of(pool.name, measure)), shown, outcome)

    def tied_outcomes(self, pool: Pool) -> Iterator[tuple[Item, Outcome]]:
        """Yield every query of a pool with its outcome if all scores are equal."""
        equal = np.broadcast_to(np.float32(0), (len(pool.images), len(pool.texts)))
        return ((result.item, result.outcome) for result in self.results(pool, equal))

    def item(self, pool: Pool, of_images: bool, query: int, ranked: Ranking) -> Item:
        """An item for a query with its best candidates."""
        if of_images:
            record = pool.records[query]
            texts = tuple(pool.texts[place][0] for place in (ranked.true, ranked.false))
            return Item(record.name, "", (pool.images[query],), texts, record.cluster or record.name)
        images = tuple(pool.images[place] for place in (ranked.true, ranked.false))
        return Item(f"text {query}", "", images, (pool.texts[query][0],), pool.records[ranked.true].name)


def task_of(pool: str, measure: Recall) -> str:
    """The task of a pool's queries under a measure, such as "imagenet1k acc1"."""
    return f"{pool} {measure.name}".strip()


def true_candidates(pool: Pool, of_images: bool) -> dict[int, Int64[np.ndarray, " t"]]:
    """For each query that has true candidates, their indices."""
    answers: dict[int, list[int]] = {}
    for pair in pool.pairs:
        query, true = pair if of_images else pair[::-1]
        answers.setdefault(query, []).append(true)
    return {query: np.array(true, np.int64) for query, true in sorted(answers.items())}


def reword_pool(pool: Pool, texts: Mapping[Caption, Caption]) -> Pool:
    """A copy of a pool in which `texts` maps each phrasing to another; texts without any phrasing left are dropped."""
    new = [tuple(texts[phrasing] for phrasing in text if texts[phrasing].text) for text in pool.texts]
    places = {old: place for place, old in enumerate(old for old, text in enumerate(new) if text)}
    pairs = tuple((image, places[text]) for image, text in pool.pairs if text in places)
    return pool._replace(texts=tuple(filter(None, new)), pairs=pairs)

"""The file of all scores of a model on a frozen benchmark, from which a card's numbers are computed.

A row has the scores of an item's images, one image after another: first those of the true texts, then those of the
false ones. If a judge gives no answer for an image, all its scores are "nan".
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import read_text
from menagerie.generators.benchmarks.benchmark import FOUR_WAY, FOUR_WAY_RULES, Item, Scores, apply_rule, texts_chosen
from menagerie.generators.frozen.digests import digest_of_rows
from menagerie.studies.analysis.words import CHANCES

FILE = "scores.csv"
COLUMNS = ("subset", "task", "scene", "animals", "true", "scores")
HAD = "had"  # an optional column: 1 for records that are left out of all numbers because training had them


class ScoredItem(NamedTuple):
    """An item with its scores."""

    subset: str
    task: str
    scene: str
    animals: str
    true: int
    scores: Scores
    had: bool = False
    """Whether it is left out of all numbers, because the model's training had it."""


class RecordResult(NamedTuple):
    """The result of one record in one task."""

    subset: str
    task: str
    animals: str
    value: float
    """1 if all true texts score above all false ones, a share of 1 for ties, else 0."""
    chance: float


def score_row(subset: str, item: Item, scores: Scores) -> tuple[object, ...]:
    """Return the row of an item. Nine digits represent a number of single precision exactly."""
    written = "; ".join(" ".join(f"{score:.9g}" for score in image) for image in scores)
    return subset, item.task, item.record, item.cluster, item.true, written


def read_scores(path: Path) -> list[ScoredItem]:
    """Read a file of scores; raises `UserError` for a row that can't be read."""
    header, *rows = csv.reader(io.StringIO(read_text(path))) or [[]]
    if tuple(header) not in (COLUMNS, (*COLUMNS, HAD)):
        raise UserError(f"{path} has no scores: its columns must be {', '.join(COLUMNS)}")
    try:
        return [parse_row(*row) for row in rows]
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} has a row that can't be read ({error}); make it again by evaluation") from error


def parse_row(subset: str, task: str, scene: str, animals: str, true: str, scores: str, had: str = "0") -> ScoredItem:
    """Parse the texts of a row; raises `ValueError` for numbers that aren't scores."""
    matrix = np.array([[float(score) for score in image.split()] for image in scores.split(";")], np.float64)
    if not (np.isfinite(matrix).all(1) | np.isnan(matrix).all(1)).all() or not 1 <= int(true) < matrix.shape[1]:
        raise ValueError(f"{true} of {scores[:40]!r}")
    return ScoredItem(subset, task, scene, animals, int(true), matrix, bool(int(had)))


def scenes_digest(items: Iterable[ScoredItem]) -> str:
    """Return the digest of these items' scenes. For all items of a benchmark it equals the benchmark's digest of
    scenes."""
    return digest_of_rows((*item[:5], *item.scores.shape) for item in items)


def record_results(items: Iterable[ScoredItem], rules: Sequence[str] = tuple(FOUR_WAY_RULES)) -> Iterator[RecordResult]:
    """Yield the result of each record that isn't left out. A four-way item (two images with two texts) has a result by
    each of `rules`, in which a tie is wrong unless a judge gives no answer."""
    for subset, task, _, animals, true, scores, had in items:
        if had:
            continue
        if task == FOUR_WAY:
            for part in rules:
                name = f"{part} score"
                yield RecordResult(
                    subset, name, animals, apply_rule(FOUR_WAY_RULES[part], scores).official, CHANCES[name] / 100
                )
        else:
            chance = 1 / math.comb(scores.shape[1], true)
            yield RecordResult(
                subset, task, animals, apply_rule(partial(texts_chosen, true=true), scores).neutral, chance
            )

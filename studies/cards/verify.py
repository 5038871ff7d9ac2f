"""Verifies cards: their seal, their benchmark, and their numbers against the scores beside them."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import file_name
from menagerie.envs.core.reading import read_text
from menagerie.envs.core.records import check_digest
from menagerie.generators.frozen.benchmark import load_frozen
from menagerie.generators.splits.recipe_file import FROZEN
from menagerie.studies.cards.card import Card, benchmark_of, page_of, read_card
from menagerie.studies.cards.numbers import MEANS, Number, compute_numbers
from menagerie.studies.cards.scores import read_scores, record_results, scenes_digest

NEAR = 1.5e-5  # numbers are rounded to five digits, perhaps differently on another machine


class VerifiedCard(NamedTuple):
    """A verified card."""

    path: Path
    card: Card
    recomputed: bool
    """Whether the card's numbers were recomputed from the scores beside it."""


def verify_card(path: Path) -> VerifiedCard:
    """Verify a card; raises `UserError` for the first error in it."""
    if path.suffix != ".json":
        raise UserError(f"{path} is not a card: give the .json file, which has the seal")
    card, seal = read_card(path)
    check_card_benchmark(path, card)
    check_means(path, card)
    page = path.with_suffix(".md")
    if page.exists() and read_text(page) != page_of(card, seal):
        raise UserError(f"{page} differs from {path.name}; delete it, or evaluate the model again")
    name = card.predictions.file
    if not name.endswith(".csv") or file_name(name) != name:
        raise UserError(f"{path} names {name!r} as its scores, which isn't a .csv file beside it")
    scores = path.with_name(name)
    if there := scores.exists():
        check_card_numbers(path, card, scores)
    return VerifiedCard(path, card, there)


def check_card_benchmark(path: Path, card: Card) -> None:
    """Raise unless this program has the card's benchmark with the same version, resolution and digest."""
    name = card.benchmark.name
    try:
        ours = benchmark_of(load_frozen(choose("frozen benchmark", name, FROZEN)))
    except UserError as error:
        raise error.at(path) from error
    for part in ("version", "resolution", "digest"):
        there, here = getattr(card.benchmark, part), getattr(ours, part)
        if there != here:
            raise UserError(f"{path} is of another {name}: its {part} is {there}, not {here}")


def check_means(path: Path, card: Card) -> None:
    """Raise unless a card's means are those of its tests."""
    if [mean.task for mean in card.means] != list(MEANS):
        raise UserError(
            f"the means in {path} are of {[m.task for m in card.means]}, not of {list(MEANS)}; write the card again"
        )
    for mean, takes in zip(card.means, MEANS.values(), strict=True):
        chosen = [number for number in card.tests if takes(number.task)]
        sums = [sum(getattr(number, part) for number in chosen) for part in ("accuracy", "chance", "records")]
        expected = [sums[0] / max(len(chosen), 1), sums[1] / max(len(chosen), 1), sums[2]]
        written = [getattr(mean, part) for part in ("accuracy", "chance", "records")]
        if not chosen or not np.allclose(written, expected, rtol=0, atol=NEAR):
            raise UserError(f"{path}: the mean of {mean.task} isn't that of its tests")


def check_card_numbers(path: Path, card: Card, scores: Path) -> None:
    """Raise unless the file `scores` is the card's, has the benchmark's records, and gives the card's numbers."""
    check_digest(scores, card.predictions.digest)
    items = read_scores(scores)
    if scenes_digest(items) != load_frozen(card.benchmark.name).parts.scenes:
        raise UserError(f"{scores} has scores of other records than {card.benchmark.name}")
    answers = card.model.answers
    if answers and answers.items != len(items):
        raise UserError(f"{path} is of answers about {answers.items} items, but its scores have {len(items)}")
    lost = Counter(item.subset for item in items if item.had and item.task == "swap")
    if any(lost[test.test] != test.left_out for test in card.model.had) or lost.keys() - {
        t.test for t in card.model.had
    }:
        raise UserError(f"{path}: the numbers of records that training had differ from those in its scores")
    tests, means = compute_numbers(record_results(items, card.model.rules))
    check_equal_numbers(path, [*card.means, *card.tests], [*means, *tests])


def check_equal_numbers(path: Path, there: Sequence[Number], here: Sequence[Number]) -> None:
    """Raise if a card has other numbers than its scores give: for other tests or tasks, or of other values."""
    names = [[(number.test, number.task) for number in numbers] for numbers in (there, here)]
    if names[0] != names[1]:
        raise UserError(f"{path} has numbers of other tasks than its scores")
    for written, found in zip(map(msgspec.to_builtins, there), map(msgspec.to_builtins, here), strict=True):
        for part, value in found.items():
            other = written[part]
            both = isinstance(value, float) and isinstance(other, float)
            if value != other and not (both and abs(value - other) <= NEAR):
                where = f"{found['test']} {found['task']}".strip()
                raise UserError(f"{path}: {part} of {where} is {other}, but its scores give {value}")

"""Cards: a model's numbers on a frozen benchmark as sealed JSON, with the scores of every record; and a leaderboard
of cards.

The seal is a digest of the card's text. It detects accidental changes, but it isn't a signature, as everybody can
compute it. A card is proved by the scores beside it, from which its numbers are computed again, or by evaluating the
model again.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from jaxtyping import Float64

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import copy_file, write_text
from menagerie.envs.core.reading import read_text
from menagerie.envs.core.records import check_digest, file_digest, seal, unseal
from menagerie.generators.benchmarks.benchmark import four_way_rules
from menagerie.generators.frozen.benchmark import Frozen, load_frozen
from menagerie.generators.splits.recipe_file import FROZEN
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.estimate import Estimate, estimates
from menagerie.studies.scoring.card_scores import read_scores, record_results, scenes_digest

FORM = 1  # of cards
NEAR = 1.5e-5  # numbers are rounded to five digits, perhaps differently on another machine
MEANS: Mapping[str, Callable[[str], bool]] = {
    "swaps of all tests": lambda task: task == "swap",
    "all tasks but four-way, of all tests": lambda task: not task.endswith(" score"),
}
"""The means of a card, each with its tasks. Four-way items aren't among them, because they have the captions of swaps
again."""


class Number(msgspec.Struct, forbid_unknown_fields=True):
    """An accuracy from 0 to 1 with its interval for new animal pairs, if it has one."""

    test: str
    task: str
    accuracy: float
    low: float | None
    high: float | None
    chance: float
    records: int
    pairs: int

    @property
    def cells(self) -> list[str]:
        """The accuracy and its interval in percent."""
        ends = (f"{100 * end:.1f}" for end in (self.low, self.high) if end is not None)
        return [f"{100 * self.accuracy:.1f}", " to ".join(ends) or DASH]


class CardAnswers(msgspec.Struct, forbid_unknown_fields=True):
    """Counts of a judge's answers: its items, and those without a verdict, which tie."""

    items: int
    undecided: int
    compares_images: bool
    """Whether scores of two images can be compared; else four-way items have only a text score."""

    def __str__(self) -> str:
        return f"{self.undecided} of {self.items} items without a verdict"


class CardTest(msgspec.Struct, forbid_unknown_fields=True):
    """What a model's training had of a test, in words, and how many records are left out of all numbers for it."""

    test: str
    had: str
    left_out: int


class CardModel(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The model of a card."""

    name: str
    weights: str
    """Hash of everything that decides the model's scores: weights, settings, source code."""
    about: str
    trained_on: str
    """The training data and steps, if a study here trained the model; else empty."""
    unread: int
    """Number of texts that are longer than the model reads."""
    answers: CardAnswers | None = None
    """Only for judges."""
    had: list[CardTest] = []

    @property
    def marked(self) -> str:
        """The name, with the numbers of items without a verdict and of records that training had, if any."""
        undecided = [str(self.answers)] if self.answers and self.answers.undecided else []
        lost = sum(test.left_out for test in self.had)
        return ", ".join([self.name, *undecided, *[f"without {lost} records for what its training had"] * (lost > 0)])


class Card(msgspec.Struct, forbid_unknown_fields=True):
    """The content of a card."""

    form: int
    benchmark: dict[str, str | int]
    """Its name, version, digest and resolution."""
    model: CardModel
    program: dict[str, str | int]
    """The version, render version and commit of the program that made the card."""
    date: str
    means: list[Number]
    tests: list[Number]
    predictions: dict[str, str]
    """The name and the digest of the file of scores."""


class VerifiedCard(NamedTuple):
    """A verified card, and whether its numbers were computed again from the scores beside it."""

    path: Path
    card: Card
    recomputed: bool


def benchmark_entry(frozen: Frozen) -> dict[str, str | int]:
    """Return a card's entry on a benchmark."""
    return {name: getattr(frozen, name) for name in ("name", "version", "digest", "resolution")}


def card_numbers(scores: Path, answers: CardAnswers | None = None) -> tuple[list[Number], list[Number]]:
    """Return the number of each task of each test in a file of scores, and the means, in which all tasks count
    alike."""
    rules = four_way_rules(answers is None or answers.compares_images)
    points = pd.DataFrame(record_results(read_scores(scores), rules)).assign(seed=0, all="")
    points["part"] = points.subset + "\n" + points.task
    parts = points.groupby(["subset", "task"], sort=False)
    tests = [card_number(*key, [parts.get_group(key)], its) for key, its in estimates(points, parts.keys).items()]
    means = []
    for name, takes in MEANS.items():
        chosen = points[points.task.map(takes)]
        (its,) = estimates(chosen, ("all", "part"), statistic=("part", mean_of_parts)).values()
        means.append(card_number("", name, [part for _, part in chosen.groupby("part", sort=False)], its))
    return tests, means


def mean_of_parts(means: Float64[np.ndarray, "rows parts"]) -> Float64[np.ndarray, " rows"]:
    return means.mean(1).clip(0, 1)


def card_number(test: str, task: str, parts: Sequence[pd.DataFrame], its: Estimate) -> Number:
    """Return the mean of some parts, each with the records of a task of a test."""
    low, high = (round(end, 5) if its.known else None for end in (its.low, its.high))
    chance, pairs = np.mean([part.chance.mean() for part in parts]), {*pd.concat(parts).animals}
    return Number(test, task, round(its.value, 5), low, high, round(float(chance), 5), its.n, len(pairs))


def write_card(
    folder: Path, name: str, scores: Path, frozen: Frozen, model: CardModel, program: dict[str, str | int], date: str
) -> Path:
    """Write a card as `name`.json, with a copy of its scores as `name`.csv; returns the .json file."""
    path, copy = folder / f"{name}.json", folder / f"{name}.csv"
    copy_file(scores, copy)
    tests, means = card_numbers(copy, model.answers)
    kept = {"file": copy.name, "digest": file_digest(copy)}
    card = Card(FORM, benchmark_entry(frozen), model, program, date, means, tests, kept)
    write_text(path, seal(msgspec.to_builtins(card), indent=1) + "\n")
    return path


def markdown_table(header: Sequence[str], rows: Any) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return [
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    ]


def read_card(path: Path) -> Card:
    """Read a card. Raises `UserError` if it was changed, or isn't a card."""
    if path.suffix != ".json":
        raise UserError(f"{path} is not a card: give the .json file, which has the seal")
    content = unseal(read_text(path), path, "", dict[str, Any])
    try:
        card = msgspec.convert(content, Card)
    except msgspec.ValidationError as error:
        raise UserError(f"{path} is no card of this program ({error})") from error
    if card.form != FORM:
        raise UserError(f"{path} is a card of another form, {card.form}; evaluate the model again")
    return card


def verify_card(path: Path) -> VerifiedCard:
    """Verify a card: its seal, its benchmark and, if its scores are beside it, its numbers. Raises `UserError` for the
    first error."""
    card = read_card(path)
    name = str(card.benchmark.get("name"))
    try:
        ours = benchmark_entry(load_frozen(choose("frozen benchmark", name, FROZEN)))
    except UserError as error:
        raise error.at(path) from error
    if other := next((part for part in ours if card.benchmark.get(part) != ours[part]), None):
        there = card.benchmark.get(other)
        raise UserError(f"{path} is of another {name}: its {other} is {there}, not {ours[other]}")
    if [mean.task for mean in card.means] != list(MEANS):
        raise UserError(f"{path}: its means must be of {', '.join(MEANS)}; write the card again")
    scores = path.with_suffix(".csv")
    if there := scores.exists():
        check_card_numbers(path, card, scores)
    return VerifiedCard(path, card, there)


def check_card_numbers(path: Path, card: Card, scores: Path) -> None:
    """Raise unless the file `scores` is the card's, has the benchmark's records, and gives the card's numbers."""
    check_digest(scores, card.predictions["digest"])
    items = read_scores(scores)
    if scenes_digest(items) != load_frozen(str(card.benchmark["name"])).parts.scenes:
        raise UserError(f"{scores} has scores of other records than {card.benchmark['name']}")
    lost = Counter(item.subset for item in items if item.had and item.task == "swap")
    if lost != Counter({test.test: test.left_out for test in card.model.had}):  # counts of 0 are ignored
        raise UserError(f"{path}: the numbers of records that training had differ from those in its scores")
    there, here = (
        {
            (its.test, its.task, part): value
            for its in (*means, *tests)
            for part, value in msgspec.to_builtins(its).items()
        }
        for tests, means in ((card.tests, card.means), card_numbers(scores, card.model.answers))
    )
    if there.keys() != here.keys():
        raise UserError(f"{path} has numbers of other tasks than its scores")
    for key, value in here.items():
        other = there[key]
        near = isinstance(value, float) and isinstance(other, float) and abs(value - other) <= NEAR
        if value != other and not near:
            where = " ".join(filter(None, key[:2]))
            raise UserError(f"{path}: {key[2]} of {where} is {other}, but its scores give {value}")


def number_parts(numbers: tuple[list[Number], list[Number]]) -> dict[tuple[str, str, str], Any]:
    """Return each part of each number, by test, task and name."""
    tests, means = numbers
    every = ((its, msgspec.to_builtins(its)) for its in (*means, *tests))
    return {(its.test, its.task, name): value for its, parts in every for name, value in parts.items()}


BOARD = (
    "# Leaderboard",
    "",
    "Models on frozen benchmarks (docs/benchmarks.md), the best first by the mean of swaps: how often the "
    "true caption is preferred to one of the same words. `menagerie cards board` makes this page from cards that "
    "`menagerie cards verify` accepts. Intervals are over animal pairs, for these weights, not for new trainings. A "
    "comparison of models is fair only if they had the same training images.",
)


def write_board(cards: Sequence[Path], out: Path) -> None:
    """Write the leaderboard of cards. Raises if one is wrong, or if two are of the same weights and benchmark."""
    found = [verify_card(path) for path in cards]
    keys = [(its.card.benchmark["name"], its.card.model.weights) for its in found]
    if again := next((its for its, key in zip(found, keys, strict=True) if keys.count(key) > 1), None):
        raise UserError(f"{again.path}: there is another card of the same weights on {again.card.benchmark['name']}")
    write_text(out, "\n".join([*BOARD, *board_lines(found, out.parent)]) + "\n")


def board_lines(found: Sequence[VerifiedCard], folder: Path) -> Iterator[str]:
    """Yield the lines of each benchmark that has a card. A row has a note if its numbers weren't recomputed."""
    header = ("model", "swaps, %", "95 % interval", "all tasks but four-way, %", "95 % interval", "trained on", "date")
    for name in FROZEN:
        mine = [its for its in found if its.card.benchmark["name"] == name]
        mine.sort(key=lambda its: (-its.card.means[0].accuracy, its.card.model.name))
        if not mine:
            continue
        bench, swaps = mine[0].card.benchmark, mine[0].card.means[0]
        yield from ("", f"## {name}", "")
        records = f"{swaps.records} swaps of {swaps.pairs} animal pairs"
        yield f"Digest `{bench['digest']}`, {bench['resolution']} px, {records}."
        yield from (f"Chance is {100 * swaps.chance:.1f} % of swaps.", "")
        rows = []
        for path, card, recomputed in mine:
            link = f"[card]({Path(relpath(path, folder)).as_posix()})" + ", scores not seen" * (not recomputed)
            numbers = [cell for mean in card.means for cell in mean.cells]
            rows.append([card.model.marked, *numbers, card.model.trained_on or "not by a study here", card.date, link])
        yield from markdown_table((*header, "card"), rows)

"""Cards: a model's results on a frozen benchmark, as JSON with a seal, and as a page of Markdown made from it.

The seal is a digest of the card's text. It detects accidental changes, but it isn't a signature, as everybody can
compute it. A card is proved by its predictions, or by evaluating the model again.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import copy_file, write_text
from menagerie.envs.core.reading import parse_json, read_text
from menagerie.envs.core.records import KEY, file_digest, seal, unseal
from menagerie.generators.benchmarks.benchmark import four_way_rules
from menagerie.generators.frozen.benchmark import Frozen
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.cards.numbers import Number, compute_numbers
from menagerie.studies.cards.scores import read_scores, record_results

FORM = 1  # of cards


class CardBenchmark(msgspec.Struct, forbid_unknown_fields=True):
    """The benchmark of a card."""

    name: str
    version: int
    digest: str
    resolution: int


class CardAnswers(msgspec.Struct, forbid_unknown_fields=True):
    """Counts of a judge's answers, a model that answers questions."""

    items: int
    undecided: int
    """Items without a verdict, which tie."""
    compares_images: bool
    """Whether scores of two images can be compared; else four-way items have only a text score."""

    def __str__(self) -> str:
        return f"{self.undecided} of {self.items} items without a verdict"


class CardTest(msgspec.Struct, forbid_unknown_fields=True):
    """How much of a test a model's training had."""

    test: str
    had: str
    """The counts in words, with what isn't known."""
    left_out: int
    """Number of records that are left out of all numbers, because training had their image or what the test calls
    unseen."""


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
    """How much of each test training had."""

    @property
    def marked(self) -> str:
        """The name, with the numbers of items without a verdict and of records that training had, if any."""
        undecided = [str(self.answers)] if self.answers and self.answers.undecided else []
        lost = sum(test.left_out for test in self.had)
        return ", ".join([self.name, *undecided, *[f"without {lost} records for what its training had"] * (lost > 0)])

    @property
    def rules(self) -> Sequence[str]:
        """The rules for its four-way items."""
        return four_way_rules(self.answers is None or self.answers.compares_images)


class CardProgram(msgspec.Struct, forbid_unknown_fields=True):
    """The program that made a card."""

    version: str
    render_version: int
    commit: str


class Predictions(msgspec.Struct, forbid_unknown_fields=True):
    """The file of all scores beside a card."""

    file: str
    digest: str


class Card(msgspec.Struct, forbid_unknown_fields=True):
    """The content of a card."""

    form: int
    benchmark: CardBenchmark
    model: CardModel
    program: CardProgram
    date: str
    means: list[Number]
    tests: list[Number]
    predictions: Predictions


def benchmark_of(frozen: Frozen) -> CardBenchmark:
    """Return a card's entry on a benchmark."""
    return CardBenchmark(frozen.name, frozen.version, frozen.digest, frozen.resolution)


def write_card(
    folder: Path, name: str, scores: Path, frozen: Frozen, model: CardModel, program: CardProgram, date: str
) -> Path:
    """Write a card as `name`.json and `name`.md, with a copy of its scores as `name`.csv; returns the .json file."""
    copy = folder / f"{name}.csv"
    copy_file(scores, copy)
    tests, means = compute_numbers(record_results(read_scores(copy), model.rules))
    kept = Predictions(copy.name, file_digest(copy))
    card = Card(FORM, benchmark_of(frozen), model, program, date, means, tests, kept)
    text = seal(msgspec.to_builtins(card), indent=1) + "\n"
    path = folder / f"{name}.json"
    write_text(path, text)
    write_text(path.with_suffix(".md"), page_of(card, seal_of(text)))
    return path


def read_card(path: Path) -> tuple[Card, str]:
    """Read a card and its seal; raises `UserError` if it was changed, or isn't a card."""
    text = read_text(path)
    content = unseal(text, path, "", dict[str, Any])
    try:
        card = msgspec.convert(content, Card)
    except msgspec.ValidationError as error:
        raise UserError(f"{path} is no card of this program ({error})") from error
    if card.form != FORM:
        raise UserError(f"{path} is a card of another form, {card.form}; evaluate the model again")
    return card, seal_of(text)


def seal_of(text: str) -> str:
    """Return the seal in the text of a card."""
    return str(parse_json(text, "a card")[KEY])


def page_of(card: Card, seal: str) -> str:
    """Return the card as a page of Markdown."""
    bench, model, program = card.benchmark, card.model, card.program
    facts = {
        "benchmark": f"{bench.name}, version {bench.version}, digest `{bench.digest}`, {bench.resolution} px",
        "model": f"{model.name}: {model.about}",
        "weights": f"`{model.weights}`",
        "trained on": model.trained_on or "not trained by a study of this program",
        **{f"training had of {test.test}": test.had for test in model.had},
        "texts longer than it reads": str(model.unread),
        **({"answers": f"{model.answers}, which tie"} if model.answers else {}),
        "program": f"binding-menagerie {program.version}, render version {program.render_version}"
        + (f", commit {program.commit}" if program.commit else ""),
        "date": card.date,
        "predictions": f"{card.predictions.file}, `{card.predictions.digest}`",
        "seal": f"`{seal}`",
    }
    means = [[number.task, *number_cells(number)] for number in card.means]
    tests = [[number.test, number.task, *number_cells(number)] for number in card.tests]
    return "\n".join(
        [
            f"# {model.name} on {bench.name}",
            "",
            "How often the true caption is preferred to false ones, with a 95 % interval for new animal pairs. All",
            "tasks of a mean have equal weight.",
            "",
            *markdown_table(["", ""], facts.items()),
            "",
            *markdown_table(["mean of", *HEADER], means),
            "",
            *markdown_table(["test", "task", *HEADER], tests),
            "",
        ]
    )


HEADER = ("accuracy, %", "95 % interval", "chance, %", "records", "animal pairs")


def number_cells(number: Number) -> list[str]:
    """Return a number as cells of a table, in percent."""
    return [
        f"{100 * number.accuracy:.1f}",
        interval_text(number),
        f"{100 * number.chance:.1f}",
        str(number.records),
        str(number.pairs),
    ]


def interval_text(number: Number) -> str:
    """Write the interval in percent; a dash if there is none."""
    if number.low is None or number.high is None:
        return DASH
    return f"{100 * number.low:.1f} to {100 * number.high:.1f}"


def markdown_table(header: Sequence[str], rows: Any) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return [
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    ]

"""Cards: a model's numbers on a frozen benchmark as sealed JSON, the scores of every record beside it, and a
leaderboard of cards.

The seal is a digest of the card's text, which detects accidental changes; it is no signature. A card is proved by its
scores, from which its numbers are computed again, or by evaluating the model again.
"""

import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from os.path import relpath
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pandas as pd

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import copy_file, file_names, write_text
from menagerie.envs.core.reading import read_text
from menagerie.envs.core.records import check_digest, file_digest, seal, unseal
from menagerie.envs.render import RENDER_VERSION
from menagerie.generators.benchmarks.benchmark import FOUR_WAY, FOUR_WAY_RULES, Item, Scores, apply_rule, texts_chosen
from menagerie.generators.frozen.benchmark import Frozen, load_frozen
from menagerie.generators.frozen.digests import digest_of_rows
from menagerie.generators.splits.recipe_file import FROZEN
from menagerie.models.judges.forms import FORMS
from menagerie.models.library.judged import JudgeSource
from menagerie.studies.analysis.tables import DASH, markdown_row
from menagerie.studies.analysis.words import CHANCES
from menagerie.studies.frame.estimate import Estimate, estimates
from menagerie.studies.frame.records import Records
from menagerie.studies.runs.results import checked_file
from menagerie.studies.scoring.models import Model, explain_source, training_lines
from menagerie.studies.scoring.page import named_results
from menagerie.studies.scoring.piece import SCORES

COLUMNS = ("subset", "task", "scene", "animals", "true", "scores", "had")
"""Of a file of scores: the images of an item one after another, of each the scores of its true texts and then of the
false ones, "nan" where a judge gives no answer; 1 for records that training had, which no number counts."""
NEAR = 1.5e-5  # numbers are rounded to five digits, perhaps differently on another machine


class Number(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """An accuracy from 0 to 1 with its interval for new animal pairs, if it has one."""

    test: str
    task: str
    accuracy: float
    low: float | None
    high: float | None
    chance: float
    records: int
    pairs: int


class CardModel(msgspec.Struct, forbid_unknown_fields=True):
    """The model of a card."""

    name: str
    weights: str
    """Hash of everything that decides the model's scores: weights, settings, source code."""
    about: str
    trained_on: str  # the training data and steps, if a study here trained the model
    unread: int  # texts that are longer than the model reads
    answers: dict[str, int] = {}
    """Of a judge: the numbers of its items and of those without a verdict, which tie."""
    compares_images: bool = True
    """Whether scores of two images can be compared; else four-way items have only a text score."""
    had: dict[str, str] = {}  # by test, what training had of it, in words
    left_out: dict[str, int] = {}  # how many records of each test are left out for it

    @property
    def marked(self) -> str:
        """The name, with the numbers of items without a verdict and of records that training had, if any."""
        silent, lost = self.answers.get("undecided", 0), sum(self.left_out.values())
        verdicts = f", {silent} of {self.answers.get('items')} items without a verdict" * (silent > 0)
        return f"{self.name}{verdicts}" + f", without {lost} records for what its training had" * (lost > 0)


class Card(msgspec.Struct, forbid_unknown_fields=True):
    """The content of a card."""

    form: Literal[2]
    benchmark: dict[str, str | int]
    model: CardModel
    program: dict[str, str | int]
    date: str
    means: list[Number]
    tests: list[Number]
    scores: str
    """The digest of the file of scores, which is called as the card is."""


def score_row(subset: str, item: Item, scores: Scores, had: bool = False) -> tuple[object, ...]:
    """Return the row of an item. Nine digits represent a number of single precision exactly."""
    written = "; ".join(" ".join(f"{score:.9g}" for score in image) for image in scores)
    return subset, item.task, item.record, item.cluster, item.true, written, int(had)


def read_scores(path: Path) -> list[Any]:
    """Read a file of scores, perhaps of before its last column; raises for a row that can't be read."""
    try:
        rows = pd.read_csv(io.StringIO(read_text(path)), dtype=str, keep_default_na=False, index_col=False)
        if tuple(rows) not in (COLUMNS, COLUMNS[:-1]):
            raise UserError(f"{path} has no scores: its columns must be {', '.join(COLUMNS)}")
        rows = rows.assign(true=rows.true.astype(int), had=rows.had == "1" if "had" in rows else False)
        items = [[[float(score) for score in image.split()] for image in text.split(";")] for text in rows.scores]
        rows["scores"] = list(map(np.array, items))
        for true, scores in zip(rows.true, rows.scores, strict=True):
            if not (np.isfinite(scores).all(1) | np.isnan(scores).all(1)).all() or not 1 <= true < scores.shape[1]:
                raise ValueError(f"{true} of {scores.tolist()}")
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} has a row that can't be read ({error}); make it again by evaluation") from error
    return list(rows.itertuples(index=False, name="CardItem"))


def record_results(items: Iterable[Any], compares_images: bool = True) -> pd.DataFrame:
    """Return a row for each record that isn't left out: subset, task, animals, its value and chance.

    A four-way item (two images with two texts) has a row by each rule, in which a tie is wrong unless a judge gives no
    answer; elsewhere a tie counts as what a guess would get.
    """
    rows = []
    for item in (item for item in items if not item.had):
        if item.task == FOUR_WAY:
            for part in FOUR_WAY_RULES if compares_images else ("text",):
                value, name = apply_rule(FOUR_WAY_RULES[part], item.scores).official, f"{part} score"
                rows.append((item.subset, name, item.animals, value, CHANCES[name] / 100))
        else:
            value = apply_rule(partial(texts_chosen, true=item.true), item.scores).neutral
            rows.append((item.subset, item.task, item.animals, value, 1 / math.comb(item.scores.shape[1], item.true)))
    return pd.DataFrame(rows, columns=["subset", "task", "animals", "value", "chance"])


def card_numbers(points: pd.DataFrame) -> tuple[list[Number], list[Number]]:
    """Return means, in which all tasks but four-way items (swaps again) count alike, and the number of each task."""
    points = points.assign(seed=0, all="", part=points.subset + "\n" + points.task)
    every = estimates(points, ["subset", "task"])
    tests = [card_number(*key, points[points.part == "\n".join(key)], its) for key, its in every.items()]
    means = []
    for name, chosen in {
        "swaps of all tests": points[points.task == "swap"],
        "all tasks but four-way, of all tests": points[~points.task.str.endswith(" score")],
    }.items():
        (its,) = estimates(chosen, ("all", "part"), statistic=("part", lambda of: of.mean(1).clip(0, 1))).values()
        means.append(card_number("", name, chosen, its))
    return means, tests


def card_number(test: str, task: str, points: pd.DataFrame, its: Estimate) -> Number:
    """Return the number of some records, in which each part counts alike."""
    low, high = (round(end, 5) if its.known else None for end in (its.low, its.high))
    chance = round(float(points.groupby("part", sort=False).chance.mean().mean()), 5)
    return Number(test, task, round(its.value, 5), low, high, chance, its.n, points.animals.nunique())


def write_cards(records: Records) -> Iterator[Path]:
    """Write a card of each model on each frozen benchmark into the folder of the study, and yield their paths."""
    found = [(piece.job(records.out), result) for piece, result in named_results(records) if piece.frozen]
    titles = [f"{portable_label(piece.tested)} on {piece.label}" for piece, _ in found]
    names = titles if len({*titles}) == len(titles) else [piece.name for piece, _ in found]
    for (piece, result), (name, file) in zip(found, file_names(names).items(), strict=True):
        scores, origin = checked_file(piece.folder, SCORES), result["provenance"]
        if record_results(read_scores(scores)).empty:
            print(f"no card of {name}: its training had every record in part")
            continue
        program = {"version": origin["versions"]["binding-menagerie"], "render_version": RENDER_VERSION}
        program["commit"] = origin["commit"] or ""
        path, model = records.out / "cards" / f"{file}.json", card_model(piece.tested, piece.covered, result)
        write_card(path, scores, load_frozen(piece.label), model, program, origin["started"].partition("T")[0])
        yield path


def write_card(
    path: Path, scores: Path, frozen: Frozen, model: CardModel, program: dict[str, str | int], date: str
) -> None:
    """Write a card, .json, with a copy of its scores, .csv."""
    copy = path.with_suffix(".csv")
    copy_file(scores, copy)
    numbers = card_numbers(record_results(read_scores(copy), model.compares_images))
    card = Card(2, benchmark_entry(frozen), model, program, date, *numbers, file_digest(copy))
    write_text(path, seal(msgspec.to_builtins(card), indent=1) + "\n")


def benchmark_entry(frozen: Frozen) -> dict[str, str | int]:
    return {name: getattr(frozen, name) for name in ("name", "version", "digest", "resolution")}


def card_model(model: Model, covered: Mapping[str, Any], result: Mapping[str, Any]) -> CardModel:
    """Return what a card says about a model; `covered` is what its training had of each test (`Overlap`)."""
    judged, tests = isinstance(model.source, JudgeSource), {name: had for name, had in covered.items() if had.records}
    return CardModel(
        portable_label(model),
        model.weights,
        explain_source(model)[1],
        training_lines([model]).get(model.label, ""),
        (result.get("cut") or {}).get("texts", 0),
        {name: result["judged"][name] for name in ("items", "undecided")} if judged else {},
        FORMS[model.source.form].compares_images if judged else True,
        {name: without_folders(str(had)) for name, had in tests.items()},
        {name: had.lost for name, had in tests.items()},
    )


def portable_label(model: Model) -> str:
    """Return a model's label without folders of this machine or the address of a server."""
    return without_folders(model.cell if isinstance(model.source, JudgeSource) else model.label)


def without_folders(text: str) -> str:
    """Return a text without the folders of absolute paths in it."""
    return re.sub(r"(^|[:/( ])/(?:[^/:;,()\s]+/)*", r"\1", text)


def read_card(path: Path) -> Card:
    """Read a card. Raises `UserError` if it was changed, or isn't a card."""
    if path.suffix != ".json":
        raise UserError(f"{path} is not a card: give the .json file, which has the seal")
    try:
        return msgspec.convert(unseal(read_text(path), path, "", dict[str, Any]), Card)
    except msgspec.ValidationError as error:
        raise UserError(f"{path} is no card of this program ({error}); evaluate the model again") from error


def verify_card(path: Path) -> Card:
    """Verify a card: seal, benchmark, and numbers against the scores beside it. Raises for the first error."""
    card, scores = read_card(path), path.with_suffix(".csv")
    try:
        frozen = load_frozen(choose("frozen benchmark", str(card.benchmark.get("name")), FROZEN))
    except UserError as error:
        raise error.at(path) from error
    if card.benchmark != (ours := benchmark_entry(frozen)):
        raise UserError(f"{path} is of another {frozen.name}: {card.benchmark}, not {ours}")
    if not scores.exists():
        raise UserError(f"{path} can't be verified without its scores, {scores.name}; put them beside it")
    check_digest(scores, card.scores)
    items = read_scores(scores)
    if digest_of_rows((*item[:5], *item.scores.shape) for item in items) != frozen.parts.scenes:
        raise UserError(f"{scores} has scores of other records than {frozen.name}")
    lost = Counter(item.subset for item in items if item.had and item.task == "swap")
    if lost != Counter(card.model.left_out):  # counts of 0 are ignored
        raise UserError(f"{path}: the numbers of records that training had differ from those in its scores")
    means, tests = card_numbers(record_results(items, card.model.compares_images))
    for its, ours in zip_longest((*card.means, *card.tests), (*means, *tests)):
        if not (its and ours and all(map(are_equal, *map(msgspec.structs.astuple, (its, ours))))):
            raise UserError(f"{path} has {its}, but its scores give {ours}")
    return card


def are_equal(one: Any, other: Any) -> bool:
    """Return whether two values are the same, but for what rounding changes."""
    return one == other or (isinstance(one, float) and isinstance(other, float) and abs(one - other) <= NEAR)


BOARD = """# Leaderboard

Models on frozen benchmarks (docs/benchmarks.md), the best first by the mean of swaps. `menagerie cards board` makes
this page from cards that `menagerie cards verify` accepts. Intervals are over animal pairs, for these weights, not for
new trainings. A comparison of models is fair only if they had the same training images.
"""
BENCH = """
## {name}

Digest `{digest}`, {resolution} px, {swaps.records} swaps of {swaps.pairs} animal pairs. Chance is {chance:.1f} %.

| model | swaps, % | 95 % interval | all tasks but four-way, % | 95 % interval | trained on | date | card |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


def write_board(cards: Sequence[Path], out: Path) -> None:
    """Write the leaderboard of cards. Raises if one is wrong, or if two are of the same weights and benchmark."""
    found = {path: verify_card(path) for path in cards}
    keys = {path: (card.benchmark["name"], card.model.weights) for path, card in found.items()}
    if again := next((path for path, key in keys.items() if [*keys.values()].count(key) > 1), None):
        raise UserError(f"{again}: there is another card of the same weights on {keys[again][0]}")
    text = BOARD
    for name in FROZEN:
        mine = [(path, card) for path, card in found.items() if card.benchmark["name"] == name]
        for path, card in sorted(mine, key=lambda one: (-one[1].means[0].accuracy, one[1].model.name)):
            swaps = card.means[0]
            if f"\n## {name}\n" not in text:
                text += BENCH.format(**card.benchmark, swaps=swaps, chance=100 * swaps.chance)
            numbers = []
            for its in card.means:
                ends = (f"{100 * end:.1f}" for end in (its.low, its.high) if end is not None)
                numbers += [f"{100 * its.accuracy:.1f}", " to ".join(ends) or DASH]
            link = f"[card]({Path(relpath(path, out.parent)).as_posix()})"
            cells = [card.model.marked, *numbers, card.model.trained_on or "not by a study here", card.date, link]
            text += markdown_row(cells) + "\n"
    write_text(out, text)

"""A leaderboard of verified cards, as a page of Markdown."""

from collections.abc import Iterator, Sequence
from os.path import relpath
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_text
from menagerie.generators.splits.recipe_file import FROZEN
from menagerie.studies.cards.card import interval_text, markdown_table
from menagerie.studies.cards.verify import VerifiedCard, verify_card

HEADER = (
    "model",
    "swaps, %",
    "95 % interval",
    "all tasks but four-way, %",
    "95 % interval",
    "trained on",
    "date",
    "card",
)


def write_board(cards: Sequence[Path], out: Path) -> None:
    """Write the leaderboard of cards. Raises if one is wrong, or if two are of the same weights and benchmark."""
    found = [verify_card(path) for path in cards]
    keys = [(each.card.benchmark.name, each.card.model.weights) for each in found]
    if again := next((each for each, key in zip(found, keys, strict=True) if keys.count(key) > 1), None):
        raise UserError(f"{again.path}: there is another card of the same weights on {again.card.benchmark.name}")
    write_text(out, "\n".join([*INTRODUCTION, *benchmark_lines(found, out.parent)]) + "\n")


INTRODUCTION = (
    "# Leaderboard",
    "",
    "Models on frozen benchmarks (docs/benchmarks.md), the best first by the mean of swaps: how often the "
    "true caption is preferred to one of the same words. `menagerie cards board` makes this page from cards that "
    "`menagerie cards verify` accepts. Intervals are over animal pairs, for these weights, not for new trainings. A "
    "comparison of models is fair only if they had the same training images.",
)


def benchmark_lines(found: Sequence[VerifiedCard], folder: Path) -> Iterator[str]:
    """Yield the lines of each benchmark that has a card."""
    for name in FROZEN:
        if mine := [each for each in found if each.card.benchmark.name == name]:
            bench = mine[0].card.benchmark
            mine.sort(key=lambda each: (-each.card.means[0].accuracy, each.card.model.name))
            chance = f"Chance is {100 * mine[0].card.means[0].chance:.1f} % of swaps"
            records = f"{mine[0].card.means[0].records} swaps of {mine[0].card.means[0].pairs} animal pairs"
            yield from ("", f"## {name}", "")
            yield f"Digest `{bench.digest}`, {bench.resolution} px, {records}. {chance}."
            yield ""
            yield from markdown_table(HEADER, [board_row(each, folder) for each in mine])


def board_row(found: VerifiedCard, folder: Path) -> list[str]:
    """Return a model's row; it has a note if its numbers weren't recomputed from scores."""
    card = found.card
    swaps, every = card.means
    link = f"[card]({Path(relpath(found.path, folder)).as_posix()})" + ("" if found.recomputed else ", scores not seen")
    return [
        card.model.marked,
        *(cell for mean in (swaps, every) for cell in (f"{100 * mean.accuracy:.1f}", interval_text(mean))),
        card.model.trained_on or "not by a study here",
        card.date,
        link,
    ]

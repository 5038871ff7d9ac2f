"""How many photographs, captions and graphs there are, for reports."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from menagerie.studies.real_training.hold_out import held_out
from menagerie.studies.real_training.opening import Opened


@dataclass(frozen=True)
class Numbers:
    """How much there is, for reports."""

    images: int
    """That are trained on."""
    held_out: int
    captions: int
    left_out: tuple[tuple[str, int], ...] = ()
    """Photographs by why they are left out."""
    refused: tuple[tuple[str, int], ...] = ()
    """Texts by why they are left out."""
    parsed: str = ""
    """How many captions the parser parsed, and how many are one node, in words."""


def numbers_of(opened: Opened, unanswered: int = 0) -> Numbers:
    """How much there is of opened photographs; `unanswered` captions are one node for want of an answer."""
    chosen = held_out(name for source in opened.sources for name in source.names_of_images)
    kept = sum(name not in chosen for source in opened.sources for name in source.names_of_images)
    return Numbers(
        images=kept,
        held_out=sum(map(len, opened.sources)) - kept,
        captions=sum(source.counts()["captions"] for source in opened.sources),
        left_out=added(source.left_out for source in opened.sources),
        refused=added(source.refused_texts for source in opened.sources),
        parsed=parsed_of(opened, unanswered),
    )


def parsed_of(opened: Opened, unanswered: int) -> str:
    """How many captions were parsed, and how many are one node; empty where none needed a parser."""
    if opened.parser is None or not opened.parser.counts().captions:
        return ""
    text = opened.parser.counts().text.partition(";")[0]  # how many were known before is of one command alone
    return text + (f", and {unanswered} without an answer" if unanswered else "")


def added(parts: Iterable[Mapping[str, int]]) -> tuple[tuple[str, int], ...]:
    """Counts by reason of several sources together."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return tuple(total.items())

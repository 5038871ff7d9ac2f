"""What judges answered, beside their scores: what has no verdict, what the place decided, and what it cost."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from menagerie.models.judges.judge import PROBLEMS, Judge

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer
    from menagerie.studies.frame.parts import Part
    from menagerie.studies.frame.records import Records

MOST_UNDECIDED = 0.05  # of items without a verdict, before a row is marked
ANSWERS = (
    "Judges are models that answer questions. An item without a verdict ties: its accuracy is that of guessing, and it "
    "is counted here. Choices are asked in both orders; where the place decides, the same letter was answered in both. "
    "Tokens are of all answers that the scores are made of, also of those that were kept from before."
)


def judged_record(scorer: "Scorer | Judge") -> dict[str, Any]:
    """The counts of a judge, for a result; empty for a scorer."""
    if not isinstance(scorer, Judge):
        return {}
    return {"judged": scorer.counted(), "answered_by": list(scorer.models)}


def undecided(result: Mapping[str, Any]) -> float:
    """The share of a result's items that have no verdict."""
    counts = result.get("judged") or {}
    return counts.get("undecided", 0) / max(1, counts.get("items", 0))


def flagged(records: "Records", model: str, name: str) -> str:
    """A model's name in tables; it says so if too many of its items have no verdict."""
    worst = max((undecided(result) for arm, result in records.results if arm.cell.model == model), default=0.0)
    return f"{name}, {worst:.0%} without a verdict" if worst > MOST_UNDECIDED else name


def about_answers(records: "Records") -> "Iterator[Part]":
    """What judges answered, piece by piece."""
    from menagerie.studies.frame.parts import Facts, Heading

    said = {arm.cell.name: sentence(result) for arm, result in records.results if result.get("judged")}
    if said:
        yield Heading("What judges answered", ANSWERS)
        yield Facts(said)


def sentence(result: Mapping[str, Any]) -> str:
    """The counts of a result in words."""
    count = {"items": 0, "questions": 0, **result["judged"]}.get
    parts = [f"{count('undecided', 0)} of {count('items')} items without a verdict ({undecided(result):.1%})"]
    parts.append(f"{count('questions')} questions, {count('kept', 0)} of them answered before")
    parts += [f"{number} {problem}" for problem in PROBLEMS if (number := count(problem, 0))]
    if without := count("ungraded", 0):
        parts.append(f"{without} answers without log-probabilities, right or wrong alone")
    if bounded := count("bounded", 0):
        parts.append(f"{bounded} with one of both words not among the alternatives")
    if choices := count("choices", 0):
        parts.append(
            f"the place decided {count('by_place', 0)} of {choices} choices ({count('by_place', 0) / choices:.1%})"
        )
    parts.append(f"{count('tokens_in', 0)} tokens in, {count('tokens_out', 0)} out")
    if len(names := result.get("answered_by", [])) > 1:
        parts.append(f"answered under several names: {', '.join(names)}")
    return "; ".join(parts)

"""An arm of a study (a run with its place in the study), and what a plan may know of arms."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from menagerie.envs.core.identity import json_value
from menagerie.models.registry import short_name
from menagerie.studies.runs.data import FRACTIONS

if TYPE_CHECKING:
    from menagerie.studies.runs.cell import Start


class Arm(NamedTuple):
    """A training run, or a piece of an evaluation, with its place in a study."""

    cell: Any
    """A training run, a piece of an evaluation, or a result that was read back. It has `id`, which names its folder,
    `model`, `seed` and `tests`, its subsets in the order of tables."""
    labels: Mapping[str, Any]
    """Columns of the results beside model and seed."""
    file: Path | None = None
    """The split file of the arm's data (a folder for photographs); None until the frame has made it, and for pieces."""

    @property
    def id(self) -> str:
        return self.cell.id

    @property
    def trains(self) -> bool:
        """Whether the arm is a training run. A piece of an evaluation isn't, and makes its own job."""
        return not hasattr(self.cell, "job")

    @property
    def place(self) -> dict[str, Any]:
        """All labels with model and seed, as values of columns: lists are written as text."""
        named = {name: as_column(value) for name, value in self.labels.items()}
        return {"model": self.cell.model, "seed": self.cell.seed} | named

    @property
    def name(self) -> str:
        return ", ".join([self.cell.model, *(f"{k} {v}" for k, v in self.labels.items()), f"seed {self.cell.seed}"])


def as_column(value: Any) -> Any:
    """Convert a label's value for a column of results: several values are joined by "+"."""
    value = json_value(value)
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else value


@runtime_checkable
class KnownResults(Protocol):
    """What is known of arms while a study runs. A plan depends on nothing else."""

    def score(self, arm: Arm, subset: str = "validation", task: str = "swap") -> float | None:
        """Return the accuracy of a finished arm; 0 if it diverged, None while it has no result."""

    def mean(self, arms: Iterable[Arm], subset: str = "validation", task: str = "swap") -> float | None:
        """Return the mean score of some arms; None until all of them have a score."""
        scores = [self.score(arm, subset, task) for arm in arms]
        known = [score for score in scores if score is not None]
        return sum(known) / len(known) if known and len(known) == len(scores) else None

    def over(self, arm: Arm) -> bool:
        """Whether an arm has ended, with a result or without."""

    def weights(self, arm: Arm, name: str) -> "Start | None":
        """Return the weights of a finished arm, from which another arm can start; None if it has no weights (yet).
        `name` is the name of these weights in tables."""

    def has_diverged(self, arm: Arm) -> bool:
        """Whether an arm diverged: its loss, weights or scores weren't finite, so it never gets a result."""

    @property
    def owner(self) -> str:
        """The name under which this study owns trials of searches."""

    def storage(self, given: str) -> Any:
        """Return where trials of searches are stored: `given` or, if that is empty, a file in the study's folder."""


def label_text(name: str, value: Any) -> str:
    """Return the text for a label's value, the same in all parts of a page."""
    if name == "model":
        return short_name(str(value))
    if name in FRACTIONS and isinstance(value, float):
        return f"{value:.0%}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if "=" in text else text.replace("_", " ")  # a line of configuration is left as the user typed it

"""An arm of a study (a run with its place in the study), what a plan may know of arms, and plans that depend on it."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from menagerie.envs.core.identity import json_value
from menagerie.models.registry import short_name
from menagerie.studies.runs.cell import Start
from menagerie.studies.runs.data import FRACTIONS

Choice = TypeVar("Choice")
IMAGINED = "imagined"
"""The owner of trials in a dry run."""
WHY = "why it failed"
"""The attribute of a pruned trial that says why it has no value."""
BEGUN = 0.6
"""Accuracy on validation below which a model is about at chance."""


class Arm(NamedTuple):
    """A training run, or a piece of an evaluation, with its place in a study."""

    cell: Any
    """Has `id`, which names its folder, `model`, `seed` and `tests`, its subsets in the order of tables."""
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


@runtime_checkable
class KnownResults(Protocol):
    """What is known of arms while a study runs. A plan depends on nothing else."""

    def score(self, arm: Arm, subset: str = "validation", task: str = "swap") -> float | None:
        """Return the accuracy (0 to 1) of a finished arm; 0 if it diverged, None while it has no result."""

    def mean(self, arms: Iterable[Arm], subset: str = "validation", task: str = "swap") -> float | None:
        """Return the mean score of some arms; None until all of them have a score."""
        scores = [self.score(arm, subset, task) for arm in arms]
        known = [score for score in scores if score is not None]
        return sum(known) / len(known) if known and len(known) == len(scores) else None

    def over(self, arm: Arm) -> bool:
        """Whether an arm has ended, with a result or without."""

    def weights(self, arm: Arm, name: str) -> Start | None:
        """Return the weights of a finished arm, called `name` in tables; None if it has none (yet)."""

    def has_diverged(self, arm: Arm) -> bool:
        """Whether an arm diverged: its loss, weights or scores weren't finite, so it never gets a result."""

    @property
    def owner(self) -> str:
        """The name under which this study owns trials of searches, the same on every machine."""

    def storage(self, given: str) -> Any:
        """Return where trials of searches are stored: `given` or, if that is empty, a file in the study's folder."""


class InventedResults(KnownResults):
    """Invented results, in which accuracy rises with every step: then an adaptive plan trains the most arms."""

    owner = IMAGINED

    def __init__(self) -> None:
        self.ended: set[str] = set()
        self.kept: Any = None

    def storage(self, given: str) -> Any:
        """Return one storage in memory, so that nothing is written."""
        from optuna.storages import InMemoryStorage

        self.kept = self.kept or InMemoryStorage()
        return self.kept

    def score(self, arm: Arm, subset: str = "validation", task: str = "swap") -> float | None:
        """A number from 0.5 to 1 that rises with the steps; None if the arm hasn't ended yet."""
        if arm.id not in self.ended:
            return None
        steps = getattr(getattr(arm.cell, "recipe", None), "steps", 0)
        return 1 - 0.5 / (1 + steps / 1000)

    def over(self, arm: Arm) -> bool:
        return arm.id in self.ended

    def has_diverged(self, arm: Arm) -> bool:
        return False

    def weights(self, arm: Arm, name: str) -> Start | None:
        return Start(arm.id, Path(arm.id), name, arm.cell.images_seen) if arm.id in self.ended else None


class Course(NamedTuple):
    """The state of an adaptive part of a plan."""

    chosen: Any
    """The choice that `successive_halving` ended with; None until then, and from `raise_until_flat`."""
    arms: list[Arm]
    means: tuple[float, ...] = ()
    """From `raise_until_flat`: the mean accuracy on validation, for each budget whose arms all have one."""
    waiting: bool = False
    """Whether further arms may be added once those of the plan so far have ended."""
    stopped: bool = False
    """Whether validation has stopped rising, so that no larger budget would be trained."""

    def outlook(self, rise: float) -> str:
        """Return what the budgets so far say of larger ones: "choosing" or "waiting" while runs are missing (before or
        after the choice), "stopped", "at chance", "rising" (by more than `rise`) or "flat"."""
        if self.waiting:
            return "choosing" if self.chosen is None else "waiting"
        if self.stopped:
            return "stopped"
        if len(self.means) > 1 and max(self.means) < BEGUN:
            return "at chance"
        return "rising" if len(self.means) > 1 and self.means[-1] > max(self.means[:-1]) + rise else "flat"


def successive_halving(
    known: KnownResults, choices: Sequence[Choice], budgets: Iterable[int], arm_of: Callable[[Choice, int], Arm]
) -> Course:
    """Plan successive halving (Jamieson & Talwalkar 2016). After each budget the better half of the choices by
    validation accuracy (rounded up; of equal ones the earlier) goes on, until one is left or budgets end."""
    left, arms = list(choices), []
    for budget in budgets:
        if len(left) == 1:
            break
        now = [arm_of(choice, budget) for choice in left]
        arms += now
        scores = [known.score(arm) for arm in now]
        if None in scores:
            return Course(None, arms, waiting=True)
        order = sorted(range(len(left)), key=lambda k: -scores[k])
        left = [left[k] for k in order[: -(-len(left) // 2)]]
    return Course(left[0], arms)


def raise_until_flat(
    known: KnownResults, budgets: Iterable[int], arms_of: Callable[[int], list[Arm]], patience: int, rise: float
) -> Course:
    """Plan rising budgets, one after another, until the last `patience` raised the mean validation accuracy by at most
    `rise`; not while the model is at chance."""
    arms: list[Arm] = []
    means: list[float] = []
    for budget in budgets:
        now = arms_of(budget)
        arms += now
        scores = [known.score(arm) for arm in now]
        if None in scores:
            return Course(None, arms, tuple(means), waiting=True)
        means.append(statistics.mean(scores))
        if has_stopped(means, patience, rise):
            return Course(None, arms, tuple(means), stopped=True)
    return Course(None, arms, tuple(means))


def has_stopped(means: Sequence[float], patience: int, rise: float) -> bool:
    """Whether the last `patience` values exceed the best one before by at most `rise`. False at chance: its accuracy
    may not have begun to rise."""
    begun = len(means) > patience and max(means) >= BEGUN
    return begun and max(means[-patience:]) <= max(means[:-patience]) + rise

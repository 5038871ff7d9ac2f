"""Plans that depend on results so far: successive halving of choices by validation accuracy, then rising budgets until
that accuracy stops rising.

These functions have no side effects, so a plan can be tried without training anything.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.study import AnyStudy
from menagerie.studies.runs.cell import Start

Choice = TypeVar("Choice")

IMAGINED = "imagined"
"""The owner of trials in a dry run."""
WHY = "why it failed"
"""The attribute of a pruned trial that says why it has no value."""
BEGUN = 0.6
"""Accuracy on validation below which a model is about at chance."""


class Course(NamedTuple):
    """The state of an adaptive part of a plan."""

    chosen: Any
    """The choice that `successive_halving` ended with; None until then, and from `raise_until_flat`."""
    arms: list[Arm]
    """All arms of the plan so far, finished ones too, each once."""
    means: tuple[float, ...] = ()
    """From `raise_until_flat`: the mean accuracy on validation, for each budget whose arms all have one."""
    waiting: bool = False
    """Whether further arms may be added once those of the plan so far have ended."""
    stopped: bool = False
    """Whether validation has stopped rising, so that no larger budget would be trained."""

    def outlook(self, rise: float) -> str:
        """Return what the budgets so far say of larger ones: "choosing" or "waiting" while runs are missing (before or
        after the choice), "stopped", "at chance", "rising" if the last budget is better than the best one before by
        more than `rise`, else "flat"."""
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
    """Plan successive halving (Jamieson & Talwalkar 2016). After each budget the better half of the choices (rounded
    up; of equal ones the earlier) goes on, until one is left. If budgets end before that, the best remaining one is
    chosen.

    If budgets double and a longer run continues a shorter one, all rounds after the first cost about the same.
    """
    left, arms = list(choices), []
    for budget in budgets:
        if len(left) == 1:
            break
        now = [arm_of(choice, budget) for choice in left]
        arms += now
        if (scores := all_scores(known, now)) is None:
            return Course(None, arms, waiting=True)
        order = sorted(range(len(left)), key=lambda k: -scores[k])
        left = [left[k] for k in order[: -(-len(left) // 2)]]
    return Course(left[0], arms)


def raise_until_flat(
    known: KnownResults, budgets: Iterable[int], arms_of: Callable[[int], list[Arm]], patience: int, rise: float
) -> Course:
    """Plan rising budgets. Each is added when all arms of the one before have ended. Stop if the last `patience`
    budgets raised the mean accuracy by at most `rise`, unless the model is at chance."""
    arms: list[Arm] = []
    means: list[float] = []
    for budget in budgets:
        now = arms_of(budget)
        arms += now
        if (scores := all_scores(known, now)) is None:
            return Course(None, arms, tuple(means), waiting=True)
        means.append(statistics.mean(scores))
        if has_stopped(means, patience, rise):
            return Course(None, arms, tuple(means), stopped=True)
    return Course(None, arms, tuple(means))


def all_scores(known: KnownResults, arms: Iterable[Arm]) -> list[float] | None:
    """Return each arm's accuracy on validation; None until all have one."""
    scores = [known.score(arm) for arm in arms]
    return None if None in scores else [score for score in scores if score is not None]


def has_stopped(means: Sequence[float], patience: int, rise: float) -> bool:
    """Whether the last `patience` values exceed the best one before them by at most `rise`.

    False for too few values, and while the model is at chance, because its accuracy may not have begun to rise.
    """
    if len(means) <= patience or max(means) < BEGUN:
        return False
    return max(means[-patience:]) <= max(means[:-patience]) + rise


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
        """A stand-in for the weights of an arm that has ended."""
        return Start(arm.id, Path(arm.id), name, arm.cell.images_seen) if arm.id in self.ended else None


def is_adaptive(study: AnyStudy, arms: Sequence[Arm]) -> bool:
    """Whether a study may train fewer arms than `arms` (its `all_arms`), depending on results."""
    return len({arm.id for arm in study.plan(InventedResults())}) < len(arms)


def all_arms(study: AnyStudy) -> tuple[Arm, ...]:
    """Return all arms that a study trains in the longest case, each once."""
    known = InventedResults()
    while True:
        arms = {arm.id: arm for arm in study.plan(known)}
        if arms.keys() <= known.ended:
            return tuple(arms.values())
        known.ended |= arms.keys()

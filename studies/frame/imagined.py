"""Everything that a study may train: its plan, asked as if every longer run were better."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.study import AnyStudy
from menagerie.studies.runs.cell import Start


class Imagined:
    """What would be known if accuracy rose with every step: an adaptive plan then trains the most."""

    owner = "imagined"

    def __init__(self) -> None:
        self.ended: set[str] = set()
        self.kept: Any = None

    def storage(self, given: str) -> Any:
        """A storage in memory: nothing is kept."""
        from optuna.storages import InMemoryStorage

        self.kept = self.kept or InMemoryStorage()
        return self.kept

    def score(self, arm: Arm, subset: str = "validation", task: str = "swap") -> float | None:
        """A number from 0.5 to 1 that rises with the steps; None of an arm that hasn't ended yet."""
        if arm.id not in self.ended:
            return None
        steps = getattr(getattr(arm.cell, "recipe", None), "steps", 0)
        return 1 - 0.5 / (1 + steps / 1000)

    def over(self, arm: Arm) -> bool:
        """Whether it has ended."""
        return arm.id in self.ended

    def diverged(self, arm: Arm) -> bool:
        """Never."""
        return False

    def mean(self, arms: Iterable[Arm], subset: str = "validation", task: str = "swap") -> float | None:
        """The mean of the arms' scores; None until all have ended."""
        scores = [self.score(arm) for arm in arms]
        return None if not scores or None in scores else sum(scores) / len(scores)

    def weights(self, arm: Arm, name: str) -> Start | None:
        """Weights that nobody has trained, of an arm that has ended."""
        return Start(arm.id, Path(arm.id), name, arm.cell.images_seen) if arm.id in self.ended else None


def all_arms(study: AnyStudy) -> tuple[Arm, ...]:
    """All arms that a study may come to, each once."""
    known = Imagined()
    while True:
        arms = {arm.id: arm for arm in study.plan(known)}
        if arms.keys() <= known.ended:
            return tuple(arms.values())
        known.ended |= arms.keys()

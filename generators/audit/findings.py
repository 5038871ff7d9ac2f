"""Defines the finding that a check of the audit yields, and helpers that several checks share."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from menagerie.envs.scene import Scene
from menagerie.generators.rules.hold_out import recorded_rules
from menagerie.generators.rules.rule import Rule
from menagerie.generators.storage.split_file import Split


class Finding(NamedTuple):
    """The result of one check: its claim, whether it holds, and the numbers or the first counterexample."""

    claim: str
    holds: bool
    detail: str
    skipped: bool = False
    """Whether the check wasn't done, for the reason in `detail`; then `holds` has no meaning."""


def none(claim: str, found: Iterable[str], detail: str = "") -> Finding:
    """The finding of a claim that holds if no counterexample is `found`; else its detail names the first one."""
    counterexample = next(iter(found), None)
    return Finding(claim, counterexample is None, detail if counterexample is None else f"first: {counterexample}")


def every(claim: str, scenes: Iterable[Scene], true_of: Callable[[Scene], bool]) -> Finding:
    """The finding of a claim that holds if something is true of every scene."""
    return none(claim, (scene.key for scene in scenes if not true_of(scene)))


def skipped(claim: str, reason: str) -> Finding:
    """Make the finding of a check that couldn't be done here: it counts as no failure, but is shown."""
    return Finding(claim, True, reason, skipped=True)


def animal_pair(scene: Scene) -> frozenset[str] | None:
    """The two animals of a scene, as an unordered pair; None if it shows fewer or more different animals."""
    animals = frozenset(obj.animal for obj in scene.objects)
    return animals if len(animals) == 2 else None


def rules_of(split: Split) -> tuple[Rule, ...]:
    return recorded_rules(split.recipe, split.vocabulary)


def compositions_of(scene: Scene) -> frozenset[tuple[str, str]]:
    """The combinations of animal and texture in a scene."""
    return frozenset(obj[:2] for obj in scene.objects)


def compositions_in(split: Split, subset: str) -> set[tuple[str, str]]:
    """All combinations of animal and texture that a subset shows."""
    return set().union(*map(compositions_of, split.subsets[subset].scenes))

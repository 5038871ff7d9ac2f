"""Which runs come next: choices are halved on validation, then budgets rise until validation doesn't. Free of files.

Halving is successive halving (Jamieson & Talwalkar 2016): a choice that goes on is trained on from where it was, so a
round costs about as much as the one before.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from menagerie.studies.budgets.setups import Run, Setup, Study, setups_of

# Accuracy on validation below which a model is about at chance.
BEGUN = 0.6

# Accuracy on validation of what is trained; 0 of a run whose loss is no number.
Known = Mapping[Run, float]


class Course(NamedTuple):
    """How far a model is at a split."""

    setup: Setup | None
    """What was chosen; None while choices are halved."""
    validation: tuple[float, ...]
    """Mean over seeds by budget, as far as all seeds are trained."""
    missing: tuple[Run, ...]
    """What is to be trained next; nothing where the model is done."""
    stopped: bool
    """Whether validation has stopped rising: no larger budget would be trained."""


def course_of(config: Study, known: Known, split: str, model: str) -> Course:
    """How far a model is at a split, by what is known of validation."""
    left = setups_of(config, model)
    for steps in config.budgets:
        if len(left) == 1:
            break
        runs = [Run(split, setup, 0, steps) for setup in left]
        if missing := [run for run in runs if run not in known]:
            return Course(None, (), tuple(missing), False)
        left = best_half(left, [known[run] for run in runs])
    return rising(config, known, split, left[0])


def best_half(setups: Sequence[Setup], accuracies: Sequence[float]) -> list[Setup]:
    """The better half, rounded up, of which the best is first; of equal ones those that came first."""
    order = sorted(range(len(setups)), key=lambda k: -accuracies[k])
    return [setups[k] for k in order[: -(-len(setups) // 2)]]


def rising(config: Study, known: Known, split: str, setup: Setup) -> Course:
    """The course of the one choice that is left: each budget with all seeds."""
    means: list[float] = []
    for steps in config.budgets:
        runs = [Run(split, setup, seed, steps) for seed in range(config.seeds)]
        if missing := [run for run in runs if run not in known]:
            return Course(setup, tuple(means), tuple(missing), False)
        means.append(statistics.mean(known[run] for run in runs))
        if has_stopped(means, config.patience, config.rise):
            return Course(setup, tuple(means), (), True)
    return Course(setup, tuple(means), (), False)


def has_stopped(means: Sequence[float], patience: int, rise: float) -> bool:
    """Whether none of the last `patience` values is above the best before them by more than `rise`.

    Never of a model that has not left chance yet: it may not have begun to rise.
    """
    if len(means) <= patience or max(means) < BEGUN:
        return False
    return max(means[-patience:]) <= max(means[:-patience]) + rise


def next_runs(config: Study, known: Known, splits: Sequence[str]) -> list[Run]:
    """What can be trained now: of each model at each split one budget, the longest runs first."""
    courses = [course_of(config, known, split, model) for split in splits for model in config.models]
    return sorted((run for course in courses for run in course.missing), key=lambda run: -run.steps)

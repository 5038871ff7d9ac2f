"""The searches of a tuning study: for each model one over the space, and one that repeats its best trials."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial

from menagerie.envs.core.identity import plain
from menagerie.studies.grids.grid import EXECUTION, chosen_alone
from menagerie.studies.trials.queue import Search
from menagerie.studies.tuning.space import Tuning, sampler_of


def alone(config: Tuning, model: str) -> Tuning:
    """The study of one model: the others have no part in its search."""
    return replace(config, grid=chosen_alone(replace(config.grid, models=(model,))))


def identity(config: Tuning, model: str) -> dict[str, Any]:
    """What must be the same for all that work on the search of a model."""
    fields = plain(asdict(alone(config, model)))
    grid = {name: value for name, value in fields.pop("grid").items() if name not in EXECUTION}
    return grid | {name: value for name, value in fields.items() if name not in ("storage", "study")}


def searches(config: Tuning, study: str) -> dict[str, Search]:
    """Each model's search over the space."""
    return {
        model: Search(
            f"{study} search {model}",
            config.trials,
            ("maximize",),
            partial(sampler_of, config, model),
            at_once=config.at_once,
        )
        for model in config.grid.models
    }


def repeats(config: Tuning, study: str) -> dict[str, Search]:
    """A trial for each of a model's finalists, whose value is the mean over seeds; nothing is drawn.

    One seed's validation pairs are few: the best of many trials is partly luck.
    """
    count = min(config.finalists, config.trials)
    return {
        model: Search(f"{study} repeat {model}", count, ("maximize",), RandomSampler) for model in config.grid.models
    }


def leaders(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that have a value, best first."""
    return sorted((trial for trial in trials if trial.value is not None), key=lambda trial: -trial.value)

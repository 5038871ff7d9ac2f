"""The space that every model's recipe is searched in, the same for all, and the searches that draw from it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial

from menagerie.envs.core.identity import plain, seed_of
from menagerie.models.registry import spec_of
from menagerie.models.spec import Range
from menagerie.studies.frame.cells import towers
from menagerie.studies.frame.grid import Grid
from menagerie.studies.grids.grid import chosen_alone
from menagerie.studies.runs.command_line import EXECUTION
from menagerie.studies.trials.queue import Search
from menagerie.studies.trials.space import BatchSampler, Params, spread

# Shares of the steps, the first ones, that show single-object scenes only.
PHASES = (0.0, 0.25, 0.5)
# Before the names of a model's own options, which may be called like a field of the recipe.
OWN = "option "


@runtime_checkable
class Tuning(Protocol):
    """The configuration of a tuning study: the fields of `studies/tune.py`."""

    grid: Grid
    trials: int
    parameters: int
    at_once: int
    finalists: int
    final_seeds: int
    architectures: tuple[str, ...]
    learning_rates: tuple[float, ...]
    singles_shares: tuple[float, ...]
    sampler_seed: int
    storage: str


def space(config: Tuning, model: str) -> dict[str, BaseDistribution]:
    """The parameters to be searched: those of every model's recipe, and the options that the model's spec names."""
    options = {f"{OWN}{name}": distribution(values) for name, values in spec_of(model).space.items()}
    shared = {
        "learning_rate": FloatDistribution(min(config.learning_rates), max(config.learning_rates), log=True),
        "weight_decay": FloatDistribution(1e-2, 1.0, log=True),
        "warmup": IntDistribution(20, max(20, config.grid.recipe.steps // 5)),
        "singles_share": FloatDistribution(min(config.singles_shares), max(config.singles_shares)),
        "single_object_phase": CategoricalDistribution(PHASES),
        "architecture": CategoricalDistribution(config.architectures),
    }
    return shared | options


def distribution(values: Range | tuple[Any, ...]) -> BaseDistribution:
    """Turn a range or a choice of a spec into a distribution of Optuna."""
    if not isinstance(values, Range):
        return CategoricalDistribution(values)
    if isinstance(values.least, int) and isinstance(values.most, int):
        return IntDistribution(values.least, values.most, log=values.log)
    return FloatDistribution(values.least, values.most, log=values.log)


def own_options(params: Params) -> dict[str, Any]:
    """The model's own options among the parameters of a trial."""
    return {name.removeprefix(OWN): value for name, value in params.items() if name.startswith(OWN)}


def first_point(config: Tuning, model: str) -> Params:
    """The grid's own recipe and options, as far as the space holds them, for the first trial of every model: a share
    of single-object scenes that the data decide is no point of it."""
    given = asdict(config.grid.recipe) | {"architecture": config.grid.architecture}
    options = asdict(getattr(config.grid.scorers, spec_of(model).flag))
    given |= {f"{OWN}{name}": value for name, value in options.items()}
    return {name: given[name] for name, values in space(config, model).items() if holds(values, given[name])}


def holds(values: BaseDistribution, value: str | float | int | None) -> bool:
    """Whether a parameter can have a value."""
    if isinstance(values, CategoricalDistribution):
        return value in values.choices
    return values.low <= (value or 0) <= values.high


def sampler_of(config: Tuning, model: str, number: int) -> BatchSampler:
    """Make the sampler of trial `number` of a model: it draws the grid's own values first, then evenly spread
    points, then points that TPE chooses from earlier batches."""
    ranges = space(config, model)
    points = spread(ranges, max(4, config.trials // 3, config.at_once), config.sampler_seed)
    first = [points[0] | first_point(config, model), *points[1:]]
    return BatchSampler(ranges, first, seed_of(config.sampler_seed, number), config.at_once)


def parameters(grid: Grid, model: str, architecture: str, options: Mapping[str, Any] | None = None) -> int:
    """Their number, with options of the model's own in place of the grid's."""
    from menagerie.models.contract import build

    here = towers(replace(grid, architecture=architecture), model)
    scorer = build(model, here, grid.scorers.of(model) | dict(options or {}))
    return sum(parameter.numel() for parameter in scorer.parameters())


def alone(config: Tuning, model: str) -> Tuning:
    """The study of one model: the others have no part in its search."""
    return replace(config, grid=chosen_alone(replace(config.grid, models=(model,))))


def identity(config: Tuning, model: str) -> dict[str, Any]:
    """The settings that must be the same for all workers of a model's search."""
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

"""The space that every model's recipe is searched in, the same for all, and what draws from it."""

from dataclasses import asdict
from typing import Any, Protocol, runtime_checkable

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from envs.common.seeds import seed_of
from studies.grids.grid import Grid
from studies.trials.samplers import BatchSampler
from studies.trials.space import Params, spread

# Shares of the steps, the first ones, that show lone animals only.
WARM_STARTS = (0.0, 0.25, 0.5)


@runtime_checkable
class Tuning(Protocol):
    """The configuration of a tuning study: the fields of `studies/tune.py`."""

    grid: Grid
    trials: int
    at_once: int
    finalists: int
    final_seeds: int
    architectures: tuple[str, ...]
    sampler_seed: int
    storage: str


def space(config: Tuning) -> dict[str, BaseDistribution]:
    """What is searched."""
    return {
        "learning_rate": FloatDistribution(3e-4, 1e-2, log=True),
        "weight_decay": FloatDistribution(1e-2, 1.0, log=True),
        "warmup": IntDistribution(20, max(20, config.grid.recipe.steps // 5)),
        "singles_share": FloatDistribution(0.3, 0.97),
        "warm_start": CategoricalDistribution(WARM_STARTS),
        "architecture": CategoricalDistribution(config.architectures),
    }


def first_point(config: Tuning) -> Params:
    """The grid's own recipe, as far as the space holds it: the first trial of every model."""
    own = asdict(config.grid.recipe) | {"architecture": config.grid.architecture}
    return {name: own[name] for name, values in space(config).items() if holds(values, own[name])}


def holds(values: BaseDistribution, value: Any) -> bool:
    """Whether a parameter can have a value."""
    if isinstance(values, CategoricalDistribution):
        return value in values.choices
    return values.low <= (value or 0) <= values.high


def sampler_of(config: Tuning, number: int) -> BatchSampler:
    """What draws trial `number` of any model: the grid's own recipe, then evenly spread points, then what TPE
    makes of the batches before."""
    ranges = space(config)
    points = spread(ranges, max(4, config.trials // 3, config.at_once), config.sampler_seed)
    first = [points[0] | first_point(config), *points[1:]]
    return BatchSampler(ranges, first, seed_of(config.sampler_seed, number), config.at_once)

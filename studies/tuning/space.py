"""The space that every model's recipe is searched in, the same for all, and what draws from it."""

from dataclasses import asdict
from typing import Any, Protocol, runtime_checkable

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from menagerie.envs.core.identity import seed_of
from menagerie.models.registry import spec_of
from menagerie.models.spec import Range
from menagerie.studies.grids.grid import Grid
from menagerie.studies.trials.samplers import BatchSampler
from menagerie.studies.trials.space import Params, spread

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
    """What is searched: the same of every model's recipe, and what its spec names of its own options."""
    own = {f"{OWN}{name}": distribution(values) for name, values in spec_of(model).space.items()}
    shared = {
        "learning_rate": FloatDistribution(min(config.learning_rates), max(config.learning_rates), log=True),
        "weight_decay": FloatDistribution(1e-2, 1.0, log=True),
        "warmup": IntDistribution(20, max(20, config.grid.recipe.steps // 5)),
        "singles_share": FloatDistribution(min(config.singles_shares), max(config.singles_shares)),
        "single_object_phase": CategoricalDistribution(PHASES),
        "architecture": CategoricalDistribution(config.architectures),
    }
    return shared | own


def distribution(values: Range | tuple[Any, ...]) -> BaseDistribution:
    """What a spec names, as Optuna has it."""
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
    own = asdict(config.grid.recipe) | {"architecture": config.grid.architecture}
    options = asdict(getattr(config.grid.scorers, spec_of(model).flag))
    own |= {f"{OWN}{name}": value for name, value in options.items()}
    return {name: own[name] for name, values in space(config, model).items() if holds(values, own[name])}


def holds(values: BaseDistribution, value: str | float | int | None) -> bool:
    """Whether a parameter can have a value."""
    if isinstance(values, CategoricalDistribution):
        return value in values.choices
    return values.low <= (value or 0) <= values.high


def sampler_of(config: Tuning, model: str, number: int) -> BatchSampler:
    """What draws trial `number` of a model: first the grid's own values, then evenly spread points, then what TPE
    makes of the batches before."""
    ranges = space(config, model)
    points = spread(ranges, max(4, config.trials // 3, config.at_once), config.sampler_seed)
    first = [points[0] | first_point(config, model), *points[1:]]
    return BatchSampler(ranges, first, seed_of(config.sampler_seed, number), config.at_once)

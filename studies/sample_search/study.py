"""A study of sample efficiency: its searches, its workers, its end. Optuna and torch are imported late."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.identity import plain, seed_of
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.grids.grid import EXECUTION
from menagerie.studies.sample_search.budget import SampleStudy, everything, images_of, setting_of

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

    from menagerie.studies.trials.queue import Search

# The directions of each search: images and accuracy, images alone.
QUESTIONS = {"front": ("minimize", "maximize"), "target": ("minimize",)}
# What doesn't decide results.
PLACES = EXECUTION | {"storage", "study"}


def identity(config: SampleStudy) -> dict[str, Any]:
    """What must be the same for all that work on one study."""
    return {name: value for name, value in plain(asdict(config)).items() if name not in PLACES}


def searches(config: SampleStudy, study: str) -> list["Search"]:
    """Both searches of every model, all Pareto fronts first: their runs are of use to the second ones."""
    from menagerie.studies.sample_search.samplers import ReachPruner
    from menagerie.studies.trials.queue import Search

    return [
        Search(
            name=f"{study} {question} {model}",
            trials=config.trials,
            directions=directions,
            sampler=partial(sampler_of, config, question),
            pruner=ReachPruner(config.target) if question == "target" else None,
        )
        for question, directions in QUESTIONS.items()
        for model in config.models
    ]


def sampler_of(config: SampleStudy, question: str, number: int) -> "BaseSampler":
    """What draws trial `number`; it begins with the same settings for all models and both questions."""
    from menagerie.studies.sample_search.samplers import BoundarySampler, first_points, space
    from menagerie.studies.trials.samplers import SpaceSampler

    ranges = space(config)
    first = first_points(ranges, asdict(everything(config)), max(3, config.trials // 3), config.sampler_seed)
    seed = seed_of(config.sampler_seed, question, number)
    if question == "front":
        return SpaceSampler(ranges, first, seed)
    return BoundarySampler(
        ranges, first, lambda params: images_of(config, setting_of(config, params)), config.target, seed
    )


class Worker(NamedTuple):
    """What a worker works on."""

    config: SampleStudy
    study: str
    out: Path


def run_worker(worker: Worker, interruption: Interruption) -> None:
    """One worker: runs trials until all have ended, or it is stopped."""
    from menagerie.envs.worlds import load_world
    from menagerie.generators.storage.image_store import ImageStore
    from menagerie.studies.sample_search.objectives import OBJECTIVES, Runs, help_with
    from menagerie.studies.trials.queue import Trials
    from menagerie.studies.trials.workers import work

    config, study, out = worker
    runs = Runs(config, ImageStore(config.store, load_world(config.world), config.resolution), out, interruption)

    def parts(search: "Search") -> list[str]:
        return search.name.removeprefix(f"{study} ").split(" ", 1)

    def objective(search: "Search", trial: "Trial") -> tuple[float, ...]:
        question, model = parts(search)
        return OBJECTIVES[question](runs, model, trial)

    def helping(search: "Search", trial: "FrozenTrial") -> None:
        help_with(runs, parts(search)[1], trial)

    work(Trials(config.storage), searches(config, study), objective, helping)

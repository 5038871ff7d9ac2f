"""A study of sample efficiency: its searches, its workers, its report. Optuna and torch are imported late."""

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.identity import plain, seed_of
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.grids.grid import render
from menagerie.studies.runs.command_line import EXECUTION
from menagerie.studies.sample_search.budget import Config, everything, images_of, setting_of

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

    from menagerie.studies.trials.queue import Search

# The directions of each search: images and accuracy, images alone.
QUESTIONS = {"front": ("minimize", "maximize"), "target": ("minimize",)}
# What doesn't decide results.
FURTHER = EXECUTION | {"storage", "study"}


def identity(config: Config) -> dict[str, Any]:
    """The settings that must be the same for all workers of one study."""
    return {name: value for name, value in plain(asdict(config)).items() if name not in FURTHER}


def searches(config: Config, study: str) -> list["Search"]:
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


def sampler_of(config: Config, question: str, number: int) -> "BaseSampler":
    """Make the sampler of trial `number`; the first trials are the same for all models and both questions."""
    from menagerie.studies.sample_search.samplers import BoundarySampler, first_points, space
    from menagerie.studies.trials.space import SpaceSampler

    ranges = space(config)
    first = first_points(ranges, asdict(everything(config)), max(3, config.trials // 3), config.sampler_seed)
    seed = seed_of(config.sampler_seed, question, number)
    if question == "front":
        return SpaceSampler(ranges, first, seed)
    return BoundarySampler(
        ranges, first, lambda params: images_of(config, setting_of(config, params)), config.target, seed
    )


class SearchJob(NamedTuple):
    """All that a worker needs to know of a search."""

    config: Config
    study: str
    out: Path


def run_worker(worker: SearchJob, interruption: Interruption) -> None:
    """Run trials, as one worker, until all have ended or it is stopped."""
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


def run(config: Config, study: str, out: Path) -> None:
    """Run all trials that still wait, and write the report."""
    from menagerie.studies.runs.shared import clear_shared
    from menagerie.studies.sample_search.report import write_all
    from menagerie.studies.trials.launch import Resources, run_trials
    from menagerie.studies.trials.queue import Trials

    config = replace(config, storage=config.storage or str(out / "journal.log"))
    trials, both = Trials(config.storage), searches(config, study)
    for search in both:
        trials.open(search, identity(config))
    fill_store(config)
    resources = Resources(config.at_once, config.threads, config.device, config.cluster)
    run_trials(trials, [both], run_worker, SearchJob(config, study, out), resources, out)
    clear_shared(out)
    by_name = {search.name.removeprefix(f"{study} "): trials.all(search) for search in both}
    print(f"report: {write_all(out, config, by_name)}")


def fill_store(config: Config) -> None:
    """Render what most settings show, with all cores; workers render the rest of theirs."""
    most = everything(config)
    # As many workers as there are tasks on a cluster are no measure for this machine.
    here = (config if config.cluster.engine == "none" else replace(config, workers=0)).cores
    render(replace(config, pairs=(most.pairs,), hard_negatives=(most.hard_negatives,)), here)

"""A study of sample efficiency: its searches, its workers, its end. Optuna and torch are imported late."""

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from generators.cluster_task import Interruption
from generators.seeds import seed_of
from studies.grid import EXECUTION, cores, render, workers
from studies.run_folder import plain
from studies.setting import everything, images_of, setting_of

# The directions of each search: images and accuracy, images alone.
QUESTIONS = {"front": ("minimize", "maximize"), "target": ("minimize",)}
# What doesn't decide results.
PLACES = EXECUTION | {"storage", "study"}


def identity(config: Any) -> dict[str, Any]:
    """What must be the same for all that work on one study."""
    return {name: value for name, value in plain(asdict(config)).items() if name not in PLACES}


def searches(config: Any, study: str) -> list[Any]:
    """Both searches of every model, all fronts first: their runs are of use to the second ones."""
    from studies.search import ReachPruner
    from studies.trial_storage import Search

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


def sampler_of(config: Any, question: str, number: int) -> Any:
    """What draws trial `number`; it begins with the same settings for all models and both questions."""
    from studies.search import BoundarySampler, FrontSampler, first_points, space

    ranges = space(config)
    first = first_points(ranges, asdict(everything(config)), max(3, config.trials // 3), config.sampler_seed)
    seed = seed_of(config.sampler_seed, question, number)
    if question == "front":
        return FrontSampler(ranges, first, seed)
    return BoundarySampler(
        ranges, first, lambda params: images_of(config, setting_of(config, params)), config.target, seed
    )


def run_worker(config: Any, study: str, out: Path, interruption: Interruption) -> None:
    """One worker: runs trials until all have ended, or it is asked to end."""
    from envs.world import load_world
    from generators.store import ImageStore
    from studies.trial_runs import OBJECTIVES, Runs
    from studies.trial_storage import Trials
    from studies.trial_workers import work

    runs = Runs(config, ImageStore(config.store, load_world(config.world), config.resolution), out, interruption)

    def objective(search: Any, trial: Any) -> tuple[float, ...]:
        question, model = search.name.removeprefix(f"{study} ").split(" ", 1)
        return OBJECTIVES[question](runs, model, trial)

    work(Trials(config.storage), searches(config, study), objective)


def run(config: Any, study: str, out: Path) -> None:
    """Run all trials that still wait, and write the report."""
    from studies.sample_cluster import Worker, run_on_cluster
    from studies.sample_report import write_all
    from studies.trial_storage import Trials
    from studies.trial_workers import run_workers

    config = replace(config, storage=config.storage or str(out / "journal.log"))
    trials = Trials(config.storage)
    for search in searches(config, study):
        trials.open(search, identity(config))
    fill_store(config)
    if config.cluster.engine == "none":
        run_workers(workers(config), config.threads, run_worker, config, study, out, Interruption())
    else:
        run_on_cluster(Worker(config, study, out), trials)
    found = {search.name.removeprefix(f"{study} "): trials.all(search) for search in searches(config, study)}
    print(f"report: {write_all(out, config, found)}")


def fill_store(config: Any) -> None:
    """Render what most settings show, with all cores; workers render the rest of theirs."""
    most = everything(config)
    # As many workers as there are tasks on a cluster are no measure for this machine.
    here = cores(config if config.cluster.engine == "none" else replace(config, workers=0))
    render(replace(config, pairs=(most.pairs,), hard_negatives=(most.hard_negatives,)), here)

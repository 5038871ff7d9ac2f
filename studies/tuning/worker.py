"""A worker of a tuning study: the training runs of trials, judged on validation alone."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import optuna
from optuna.trial import FrozenTrial

from menagerie.models.registry import spec_of
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.grids.cells import cells
from menagerie.studies.grids.tuned_recipes import SEARCHED
from menagerie.studies.runs.cell import Execution, Job
from menagerie.studies.runs.data import CellData
from menagerie.studies.runs.dispatch import run_interruptible
from menagerie.studies.trials.queue import Trials
from menagerie.studies.trials.space import Params, draw
from menagerie.studies.trials.training import alone, divergence, validation
from menagerie.studies.trials.workers import work
from menagerie.studies.tuning.budget import parameters
from menagerie.studies.tuning.searches import leaders, repeats, searches
from menagerie.studies.tuning.space import Tuning, own_options, space


class Worker(NamedTuple):
    """What a worker works on: a study, its folder, its image store's identity and its split files."""

    config: Tuning
    study: str
    out: Path
    store: str
    files: Mapping[CellData, Path]


@dataclass(frozen=True)
class Runs:
    """What turns recipes into results."""

    worker: Worker
    interruption: Interruption
    """What may end the training runs."""

    def job(self, model: str, point: Params, seed: int) -> Job:
        """The training run of a model at a point of the space."""
        config = self.worker.config
        recipe = replace(config.grid.recipe, **{name: point[name] for name in SEARCHED})
        flag, scorers = spec_of(model).flag, config.grid.scorers
        own = replace(scorers, **{flag: replace(getattr(scorers, flag), **own_options(point))})
        only = {"models": (model,), "architecture": point["architecture"], "seeds": config.final_seeds}
        cell = cells(replace(config.grid, recipe=recipe, scorers=own, **only), self.worker.store)[seed]
        execution = Execution.of(config.grid)
        return Job(cell, self.worker.files[cell.data], self.worker.out, execution=execution)

    def accuracy(self, model: str, point: Params, seed: int) -> float:
        """Accuracy on validation of a run, trained if it isn't finished: TPE may repeat itself."""
        job = self.job(model, point, seed)
        with alone(job.folder):
            if validation(job) is None:
                run_interruptible(job, self.interruption)
        return validation(job)

    def evaluate(self, model: str, trial: optuna.Trial) -> tuple[float]:
        """Accuracy of what is drawn for a trial."""
        point = draw(trial, space(self.worker.config, model))
        self.check_size(model, point, trial)
        with divergence(trial):
            accuracy = self.accuracy(model, point, 0)
        trial.set_user_attr("outcome", f"{accuracy:.1%} on validation")
        return (accuracy,)

    def check_size(self, model: str, point: Params, trial: optuna.Trial) -> None:
        """Prune a trial whose scorer is larger than any may be."""
        config = self.worker.config
        count = parameters(config.grid, model, point["architecture"], own_options(point))
        if count > config.parameters:
            reason = f"{count} parameters, more than --parameters {config.parameters}"
            trial.set_user_attr("outcome", f"pruned: {reason}")
            raise optuna.TrialPruned(reason)

    def repeat(self, model: str, ranked: Sequence[FrozenTrial], trial: optuna.Trial) -> tuple[float]:
        """Mean accuracy over seeds of one of the best trials; pruned where there aren't as many."""
        if trial.number >= len(ranked):
            trial.set_user_attr("outcome", f"pruned: only {len(ranked)} trials of {model} ended with a value")
            raise optuna.TrialPruned
        finalist, seeds = ranked[trial.number], range(self.worker.config.final_seeds)
        trial.set_user_attr("trial", finalist.number)
        with divergence(trial):
            mean = statistics.mean([self.accuracy(model, finalist.params, seed) for seed in seeds])
        trial.set_user_attr("outcome", f"repeats trial {finalist.number}: {mean:.1%} over {len(seeds)} seeds")
        return (mean,)


def run_worker(worker: Worker, interruption: Interruption) -> None:
    """One worker: runs trials until all have ended, or it is stopped. Repeats wait for the end of all searches."""
    trials, runs = Trials(worker.config.storage), Runs(worker, interruption)
    first, second = searches(worker.config, worker.study), repeats(worker.config, worker.study)
    models = {search.name: model for stage in (first, second) for model, search in stage.items()}
    work(trials, list(first.values()), lambda search, trial: runs.evaluate(models[search.name], trial))
    ranked = {model: leaders(trials.all(search)) for model, search in first.items()}
    work(
        trials,
        list(second.values()),
        lambda search, trial: runs.repeat(models[search.name], ranked[models[search.name]], trial),
    )

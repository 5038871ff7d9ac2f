"""Runs all trials of a tuning study, judged on validation alone, and writes what came out."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import optuna
from optuna.trial import FrozenTrial

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import write_record
from menagerie.models.registry import spec_of
from menagerie.studies.analysis.tables import write_trials
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.frame.cells import SEARCHED
from menagerie.studies.grids.grid import cells, render
from menagerie.studies.runs.cell import Execution, Job
from menagerie.studies.runs.data import CellData
from menagerie.studies.runs.dispatch import run_interruptible
from menagerie.studies.runs.shared import clear_shared
from menagerie.studies.trials.launch import Resources, run_trials
from menagerie.studies.trials.queue import Trials
from menagerie.studies.trials.space import Params, draw
from menagerie.studies.trials.workers import alone, divergence, validation, work
from menagerie.studies.tuning.report import Row, best, failures, rows_of, write_report
from menagerie.studies.tuning.space import Tuning, identity, leaders, own_options, parameters, repeats, searches, space


class SearchJob(NamedTuple):
    """All that a worker needs to know of a search: the study, its folder, the identity of its image store, and its
    split files."""

    config: Tuning
    study: str
    out: Path
    store: str
    files: Mapping[CellData, Path]


@dataclass(frozen=True)
class Runs:
    """Trains recipes of a search and returns their accuracies."""

    worker: SearchJob
    interruption: Interruption
    """A request that may end the training runs."""

    def job(self, model: str, point: Params, seed: int) -> Job:
        """The training run of a model at a point of the space."""
        config = self.worker.config
        recipe = replace(config.grid.recipe, **{name: point[name] for name in SEARCHED})
        flag, scorers = spec_of(model).flag, config.grid.scorers
        varied = replace(scorers, **{flag: replace(getattr(scorers, flag), **own_options(point))})
        only = {"models": (model,), "architecture": point["architecture"], "seeds": config.final_seeds}
        cell = cells(replace(config.grid, recipe=recipe, scorers=varied, **only), self.worker.store)[seed]
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
        """Train with the options drawn for a trial; returns the accuracy on validation."""
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


def run_worker(worker: SearchJob, interruption: Interruption) -> None:
    """Run trials, as one worker, until all have ended or it is stopped. Repeats wait for the end of all searches."""
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


def run(config: Tuning, study: str, out: Path) -> None:
    """Run all trials that still wait; write trials, the best of each model and the report."""
    config = replace(config, storage=config.storage or str(out / "journal.log"))
    first, second = searches(config, study), repeats(config, study)
    stages = [list(first.values()), list(second.values())]
    trials = Trials(config.storage)
    check_none_left_out(trials.names(), f"{study} search ", config.grid.models)
    for model in config.grid.models:
        for search in (first[model], second[model]):
            trials.open(search, identity(config, model))
    worker, grid = SearchJob(config, study, out, *split_files(config)), config.grid
    resources = Resources(grid.at_once, grid.threads, grid.device, grid.cluster)
    run_trials(trials, stages, run_worker, worker, resources, out)
    if trials.all_ended(f"{study} "):  # another command may be searching for further models in this folder
        clear_shared(out)
    publish(config, out, {model: (trials.all(first[model]), trials.all(second[model])) for model in grid.models})


def check_none_left_out(names: Sequence[str], start: str, models: Sequence[str]) -> None:
    """Raise for models that were searched for before and are not requested: the files would lose them."""
    searched = [name.removeprefix(start) for name in names if name.startswith(start)]
    if others := [model for model in searched if model not in models]:
        raise UserError(
            f"there are searches of {', '.join(others)} too, which the results would lose; name all in --models"
        )


def split_files(config: Tuning) -> tuple[str, dict[CellData, Path]]:
    """Render what all seeds show, with all cores; the store's identity and the split files."""
    # As many workers as there are tasks on a cluster are no measure for this machine.
    here = config.grid if config.grid.cluster.engine == "none" else replace(config.grid, workers=0)
    return render(replace(config.grid, seeds=config.final_seeds), here.cores)


def publish(config: Tuning, out: Path, trials: dict[str, tuple[list[FrozenTrial], list[FrozenTrial]]]) -> None:
    """Write `trials.csv`, `best.json` and the report from the trials of each model and their repeats; then raise if
    one has no recipe."""
    rows: list[Row] = [row for model, both in trials.items() for row in rows_of(model, *both)]
    if not any(row["options"] for row in rows):
        rows = [{name: value for name, value in row.items() if name != "options"} for row in rows]
    write_trials(out / "trials.csv", rows)
    chosen = best(rows, config.grid)
    if chosen:
        write_record(out / "best.json", chosen, indent=1)
    for model, recipe in chosen.items():
        print(f"{model}: validation {recipe['validation']:.1%} with {recipe['architecture']}, {recipe['recipe']}")
    tried = {model: searched for model, (searched, _) in trials.items()}
    failed = {name: why for model, searched in tried.items() for name, why in failures(model, searched).items()}
    print(f"report: {write_report(out, rows, tried, failed, config)}")
    if missing := sorted(trials.keys() - chosen.keys()):
        raise UserError(f"every trial of {', '.join(missing)} failed; the report has the reasons")

"""The objectives of both searches: training runs of a setting, one per seed, judged on validation alone.

What a trial leaves in the storage (`begin`, `note`) is all that a report needs, so that it can be written
on a machine that trained none of it. Scores of the test are stored too, and no search reads them.
"""

import contextlib
import statistics
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import Unreadable
from menagerie.envs.core.records import read_record, write_record
from menagerie.studies.analysis.pareto import Tally
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.frame.adaptive import has_stopped
from menagerie.studies.runs.cell import Execution, Job
from menagerie.studies.runs.dispatch import run_interruptible
from menagerie.studies.runs.results import finished
from menagerie.studies.runs.train import Watch
from menagerie.studies.sample_search.budget import (
    Config,
    Setting,
    cell_of,
    equal_steps,
    images_of,
    job_of,
    out_of_reach,
    over_seeds,
    setting_of,
    within_reach,
)
from menagerie.studies.sample_search.samplers import space
from menagerie.studies.trials.space import draw
from menagerie.studies.trials.workers import alone, divergence, validation

if TYPE_CHECKING:
    from menagerie.generators.storage.image_store import ImageStore

# Looks at validation while a cell trains; at its end the result has it.
CHECKS = 3

# What is known only of runs that were trained until they stopped rising.
CONVERGED = ("step", "known", "equal", "at_cap")

# Receives the number of a check and the accuracy on validation.
Hear = Callable[[int, float], None]


@dataclass(frozen=True)
class Runs:
    """Trains settings of a search and returns their results; holds the configuration, the image store and the folder
    of cells."""

    config: Config
    store: "ImageStore"
    out: Path
    interruption: Interruption
    """A request that may end the training runs."""

    def results(self, model: str, setting: Setting) -> list[dict[str, Any]]:
        """Validation accuracy and test tally of the run of every seed."""
        if self.config.budgets:
            return self.converged(model, setting)
        return [self.result(model, setting, seed) for seed in range(self.config.seeds)]

    def result(
        self, model: str, setting: Setting, seed: int, hear: Hear = lambda check, accuracy: None
    ) -> dict[str, Any]:
        """Validation accuracy and test tally of one run, trained if it isn't finished.

        `hear` receives validation while it trains, or did train, and may raise to stop it.
        """
        job = self.job(model, setting, seed)
        interim = Interim(job, hear)
        with alone(job.folder):
            if finished(job.folder) is None:
                run_interruptible(job, self.interruption, Watch(interim.look, interim.every))
            else:
                interim.replay()
        return {"cell": job.cell.id, "validation": validation(job), "test": tally_of(job)}

    def converged(self, model: str, setting: Setting) -> list[dict[str, Any]]:
        """The runs of the budget that is best on validation, of equal ones the smallest; beside each the one of the
        budget that all settings have. Budgets grow until the mean over seeds stops rising: a single seed's validation
        is a few hundred records, whose noise would stop runs or drive them on. Workers that need the same runs share
        them: each trains those that none has begun before it waits for the others."""
        ended: list[list[dict[str, Any]]] = []  # by budget and seed
        for steps in self.config.budgets:
            jobs = [self.job(model, setting, seed, steps) for seed in range(self.config.seeds)]
            for job in jobs:
                self.train(job, wait=False)
            ended.append([self.at_budget(job) for job in jobs])
            means = [statistics.mean(run["validation"] for run in runs) for runs in ended]
            if stopped := self.has_converged(means):
                break
        best = ended[means.index(max(means))]
        equal = ended[self.config.budgets.index(equal_steps(self.config))]
        return [run | {"equal": at_equal, "at_cap": not stopped} for run, at_equal in zip(best, equal, strict=True)]

    def has_converged(self, means: Sequence[float]) -> bool:
        """Whether no larger budget is trained: the last ones brought no rise, or there is no room for one."""
        no_room = len(means) > self.config.patience and max(means) > 1 - self.config.rise
        return no_room or has_stopped(means, self.config.patience, self.config.rise)

    def train(self, job: Job, wait: bool = True) -> None:
        """Train a run that isn't finished; without `wait`, unless another worker does."""
        with alone(job.folder, wait) as ours:
            if ours and finished(job.folder) is None:
                run_interruptible(job, self.interruption)

    def at_budget(self, job: Job) -> dict[str, Any]:
        """Train one run of a budget; returns it with its tallies of validation and of the test."""
        self.train(job)
        known = {"validation": validation(job), "known": tally_of(job, ("validation",)), "test": tally_of(job)}
        return {"cell": job.cell.id, "step": job.cell.recipe.steps, **known}

    def job(self, model: str, setting: Setting, seed: int, steps: int = 0) -> Job:
        """One training run, with its split file."""
        cell = cell_of(self.config, self.store.identity, model, setting, seed, steps)
        return job_of(self.store, cell, self.out, Execution.of(self.config))


class Interim:
    """Accuracy on validation while a cell trains, kept in its folder: whoever meets the cell again, or
    goes on with it, gets the same."""

    def __init__(self, job: Job, hear: Hear) -> None:
        self.steps, self.hear = job.cell.recipe.steps, hear
        self.every = max(1, self.steps // (CHECKS + 1))
        self.file, self.cell = job.folder / "interim.json", job.cell.id

    def known(self) -> dict[str, float]:
        """Accuracy by number of the check."""
        if not self.file.exists():
            return {}
        try:
            known = read_record(self.file, dict[str, float], owner=self.cell)
            if not all(map(str.isdecimal, known)):
                raise Unreadable(f"{self.file} has other keys than numbers of checks")
            return known
        except Unreadable as error:
            raise UserError(f"{error}; delete the folder {self.file.parent}: this run is made anew") from error

    def look(self, step: int, accuracy: Callable[[], float]) -> None:
        """Look at validation after each quarter of the steps but the last."""
        check = step // self.every
        if step % self.every or check > CHECKS or step == self.steps:
            return
        known = self.known()
        if str(check) not in known:
            known[str(check)] = accuracy()
            write_record(self.file, known, owner=self.cell)
        self.hear(check, known[str(check)])

    def replay(self) -> None:
        """Report all known accuracies again."""
        for check, accuracy in self.known().items():
            self.hear(int(check), accuracy)


def tally_of(job: Job, tests: tuple[str, ...] = ()) -> Tally:
    """Points and number of the swaps of some tests, else of those that are judged, by animal pair."""
    from menagerie.studies.analysis.paired_bootstrap import read_points, tally

    chosen = tests or job.cell.data.recipe.judged
    points = read_points([(job.cell.seed, job.folder)])
    return tally({key: point for key, point in points.items() if key[1] in chosen and key[2] == "swap"})


def begin(runs: Runs, trial: Any) -> Setting:
    """Draw a setting and note what is known of it."""
    setting = setting_of(runs.config, draw(trial, space(runs.config)))
    trial.set_user_attr("setting", asdict(setting))
    trial.set_user_attr("images", images_of(runs.config, setting))
    return setting


def help_with(runs: Runs, model: str, trial: Any) -> None:
    """Train what a trial of another worker still needs; that one judges it, and says if a run diverges."""
    from menagerie.models.scorer import Diverged

    if runs.config.budgets and "setting" in trial.user_attrs:
        with contextlib.suppress(Diverged):
            runs.converged(model, Setting(**trial.user_attrs["setting"]))


def note(trial: Any, results: list[dict[str, Any]], accuracy: float) -> None:
    """Note what the seeds that ended said, and the accuracy that the trial is judged by."""
    for name in ("cell", "validation", "test", *CONVERGED):
        if name not in CONVERGED or (results and name in results[0]):
            trial.set_user_attr(f"{name}s", [result[name] for result in results])
    trial.set_user_attr("accuracy", accuracy)
    trial.set_user_attr("outcome", f"{trial.user_attrs['images']} images, {accuracy:.1%} on validation")


def front(runs: Runs, model: str, trial: Any) -> tuple[float, float]:
    """Distinct images, and the accuracy on validation over all seeds."""
    setting = begin(runs, trial)
    with divergence(trial):
        results = runs.results(model, setting)
    accuracy = over_seeds(runs.config, [result["validation"] for result in results])
    note(trial, results, accuracy)
    return float(trial.user_attrs["images"]), accuracy


def to_target(runs: Runs, model: str, trial: Any) -> tuple[float]:
    """Distinct images of a setting that reaches the target.

    Pruned where it can't any more, whatever the seeds to come would get, or where the run in progress is far below
    every one that reached it (`ReachPruner`). Budgets end by themselves: all seeds are needed to see if they rise.
    """
    if runs.config.budgets:
        return front(runs, model, trial)[:1]
    setting = begin(runs, trial)
    results: list[dict[str, Any]] = []
    with divergence(trial):
        for seed in range(runs.config.seeds):
            results.append(runs.result(model, setting, seed, partial(report, runs.config, trial, results)))
            values = [result["validation"] for result in results]
            note(trial, results, over_seeds(runs.config, values))
            if out_of_reach(runs.config, values):
                raise optuna.TrialPruned(f"out of reach of the target after {len(values)} of {runs.config.seeds} seeds")
    return (float(trial.user_attrs["images"]),)


def report(config: Config, trial: Any, results: list[dict[str, Any]], check: int, accuracy: float) -> None:
    """Report accuracy of the run after `results` to Optuna; raise where the trial should end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a trial that was taken up again reports some checks again
        trial.report(accuracy, len(results) * (CHECKS + 1) + check)
    if trial.should_prune() and not within_reach(config, [result["validation"] for result in results]):
        note(trial, results, over_seeds(config, [*(result["validation"] for result in results), accuracy]))
        raise optuna.TrialPruned(f"{accuracy:.1%} at check {check} of seed {len(results)}")


OBJECTIVES = {"front": front, "target": to_target}

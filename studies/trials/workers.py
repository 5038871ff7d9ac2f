"""Worker processes that run the trials of searches until all have ended, and the training runs within trials."""

import contextlib
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import TypeVar

import optuna
from optuna.trial import FrozenTrial, TrialState

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.processes import call, end_processes, end_with_parent, workers_context
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.machine import start_server
from menagerie.studies.runs.results import finished
from menagerie.studies.trials.queue import Search, Trials

# Runs a trial of a search: its values; or raises optuna.TrialPruned. What it sets as the trial's attribute
# "outcome" is printed when the trial has ended.
Objective = Callable[[Search, optuna.Trial], Sequence[float]]
# Trains what a trial that another worker runs still needs.
Help = Callable[[Search, FrozenTrial], None]
Argument = TypeVar("Argument")
# One worker. Stopped while it trains, it saves its state after the step and gives its trial back.
Body = Callable[[Argument, Interruption], None]
WAIT_SECONDS = 1.0


def work(trials: Trials, searches: Sequence[Search], objective: Objective, help_with: Help | None = None) -> None:
    """Run whatever trial is ready, of the first search that has one, until all trials of all have ended.

    A worker that must stop (an error, a signal that raises) lets its trial wait for another. One that has no trial
    helps with those that run, if it can.
    """
    while True:
        taken = next(((search, trial) for search in searches if (trial := trials.take(search))), None)
        if taken:
            run_trial(trials, *taken, objective)
        elif all(trials.ended(search) == search.trials for search in searches):
            return
        else:
            for search, trial in running(trials, searches) if help_with else ():
                help_with(search, trial)
            time.sleep(WAIT_SECONDS)  # others run them; one of them may yet die


def running(trials: Trials, searches: Sequence[Search]) -> list[tuple[Search, FrozenTrial]]:
    """The trials that workers run now; this one runs none when it calls."""
    return [(search, trial) for search in searches for trial in trials.all(search) if trial.state is TrialState.RUNNING]


def run_trial(trials: Trials, search: Search, trial: optuna.Trial, objective: Objective) -> None:
    """Run one trial and end it, or let it wait for another worker."""
    try:
        values = objective(search, trial)
    except optuna.TrialPruned:
        values = None
    except RuntimeError:
        if trials.give_back(trial):
            raise
        return  # taken for dead, and ended by another: nothing can be noted of it any more
    except BaseException:
        trials.give_back(trial)
        raise
    trials.end(trial, values)
    outcome, ended = trial.user_attrs.get("outcome", ""), f"({trials.ended(search)} of {search.trials} ended)"
    print(f"{search.name}: trial {trial.number} {outcome} {ended}", flush=True)


def process(body: Body[Argument], messages: SimpleQueue, argument: Argument) -> None:
    """Body of a worker process; what a user did wrong is sent to the parent."""
    interruption = Interruption()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends the workers
    signal.signal(signal.SIGTERM, interruption.request)  # gives the trial back on its way out
    end_with_parent(gently=True)
    try:
        call(body, argument, interruption)
    except UserError as error:
        messages.put(str(error))
        sys.exit(2)
    except Stopped:
        sys.exit(1)
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def run_workers(count: int, threads: int, body: Body[Argument], argument: Argument) -> None:
    """Run `body(argument, interruption)` in `count` processes, which end with this one.

    The first that fails by a mistake ends all; of one that is killed the others take the trial.
    """
    start_server(threads)
    context = workers_context()
    messages = context.SimpleQueue()
    workers = [context.Process(target=process, args=(body, messages, argument)) for _ in range(count)]
    try:
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers) and not any(w.exitcode in (1, 2) for w in workers):
            wait([worker.sentinel for worker in workers if worker.is_alive()], WAIT_SECONDS)
        if not messages.empty():
            raise UserError(messages.get())
        if all(worker.exitcode for worker in workers) or any(worker.exitcode == 1 for worker in workers):
            raise UserError("a worker ended with an error (see above); start again, what ended is kept")
    finally:
        end_processes(workers)  # each after the step that it is at


@contextlib.contextmanager
def alone(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Keep others from training the same cell; they wait and find it finished, or without `wait` get False."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    ours = lock.acquire(wait)
    try:
        yield ours
    finally:
        lock.release()


def validation(job: Job) -> float | None:
    """Accuracy on the validation subset, the only one that searches look at; None if unfinished."""
    result = finished(job.folder)
    return None if result is None else result["subsets"]["validation"]["swap"]["accuracy"]


@contextlib.contextmanager
def divergence(trial: optuna.Trial) -> Iterator[None]:
    """A run whose loss, weights or scores are no numbers prunes its trial, with the reason."""
    from menagerie.models.scorer import Diverged

    try:
        yield
    except Diverged as error:
        trial.set_user_attr("outcome", f"pruned: {error}")
        raise optuna.TrialPruned(str(error)) from error

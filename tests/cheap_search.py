"""A search whose trials take no time, run by as many processes as a test starts.

    python cheap_search.py STORAGE FOLDER TRIALS [stall]

Each trial that ends leaves a line in FOLDER/ended. With "stall" the worker hangs in the middle of its
third trial, having noted so in a file of its own, until it is killed.
"""

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import optuna

from menagerie.studies.trials.queue import Search, Trials
from menagerie.studies.trials.workers import work


def sampler(number: int) -> Any:
    """Draws by the trial's number alone."""
    return optuna.samplers.RandomSampler(seed=number)


def search(trials: int) -> Search:
    """What all workers of a test work on."""
    return Search("cheap", trials, ("minimize",), sampler)


def objective(folder: Path, stalls: bool, done: list[int], search: Search, trial: Any) -> tuple[float]:
    """The square of the one parameter; prunes above a half."""
    x = trial.suggest_float("x", -1, 1)
    if stalls and len(done) == 2:
        (folder / f"stalled-{os.getpid()}").write_text(str(trial.number))
        time.sleep(1000)
    time.sleep(0.05)
    done.append(trial.number)
    with (folder / "ended").open("a") as file:
        file.write(f"{trial.number}\n")
    if x > 0.5:
        raise optuna.TrialPruned
    return (x**2,)


if __name__ == "__main__":
    storage, folder, number = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    trials = Trials(storage, beat_seconds=1)
    trials.open(search(number), {"trials": number})
    work(trials, [search(number)], partial(objective, folder, "stall" in sys.argv[4:], []))

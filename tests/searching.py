"""A search whose runs take no time, in several processes.

    python searching.py STORAGE FOLDER kill SEED     # a process is killed ten times at random moments
    python searching.py STORAGE FOLDER together      # three processes at once, each with a folder of its own

A process is the loop of a study: it asks which runs the search wants, does one, and asks again.
"""

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from optuna.distributions import FloatDistribution

from menagerie.envs.core.files import write_text
from menagerie.studies.frame.search import Search, TrialResult

SPACE = {"x": FloatDistribution(0, 1), "rate": FloatDistribution(1e-4, 1, log=True)}
TRIALS, SEEDS = 12, 2


def cheap(trials: int = TRIALS, at_once: int = 2, **more: Any) -> Search:
    """Make a search of two parameters."""
    return Search("cheap", SPACE, trials, at_once, **more)


class Runs:
    """The finished runs of a folder, a file each with its score."""

    def __init__(self, folder: Path, kept: Any = None) -> None:
        self.folder, self.owner, self.kept = folder, folder.name, kept
        folder.mkdir(exist_ok=True)

    def storage(self, given: str) -> Any:
        return self.kept or given

    def judge(self, trial: Any) -> TrialResult:
        """Judge a trial by the mean of two seeds; one near the edge is pruned."""
        params = trial.params
        if params["x"] > 0.97:
            return TrialResult((), pruned="too near the edge")
        arms = [(params["x"], params["rate"], seed) for seed in range(SEEDS)]
        scores = [float(file.read_text()) for arm in arms if (file := self.file(arm)).exists()]
        return TrialResult(arms, (sum(scores) / SEEDS,) if len(scores) == SEEDS else None)

    def file(self, arm: Any) -> Path:
        return self.folder / "-".join(map(str, arm))

    def step(self, search: Search, storage: str, most: int = 1) -> int:
        """Do some of the runs that a search wants; returns how many."""
        arms = [arm for _, tried in search.follow(self, storage, self.judge) for arm in tried.arms]
        waiting = [arm for arm in dict.fromkeys(arms) if not self.file(arm).exists()]
        for x, rate, seed in waiting[:most]:
            score = 1 - (x - 0.3) ** 2 - 0.1 * rate - 0.01 * seed
            write_text(self.file((x, rate, seed)), str(score))
        return len(waiting[:most])

    def run(self, search: Search, storage: str) -> None:
        """Do all runs of a search."""
        while self.step(search, storage):
            time.sleep(0.002)


def forked(work: Callable[[], None]) -> int:
    """Do something in a fork; returns its process id."""
    if child := os.fork():
        return child
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def killed(work: Callable[[], None], chance: random.Random) -> Iterator[None]:
    """Kill a process that does something ten times."""
    for _ in range(10):
        child = forked(work)
        time.sleep(chance.uniform(0.0, 0.08))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        yield


def main(storage: str, folder: Path, how: str, seed: int = 0) -> int:
    if how == "kill":
        list(killed(lambda: Runs(folder / "a").run(cheap(), storage), random.Random(seed)))
        children = [forked(lambda: Runs(folder / "a").run(cheap(), storage))]
    else:
        children = [forked(lambda k=k: Runs(folder / f"machine {k}").run(cheap(), storage)) for k in range(3)]
    return max(os.waitpid(child, 0)[1] for child in children)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:])) > 0)

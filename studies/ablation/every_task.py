"""Every task of every row: how low it falls on any test, so that what is good at one task only is seen to be so."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from menagerie.studies.ablation.runs import Run, Runs
from menagerie.studies.analysis.tables import DASH, WAITING, by_task
from menagerie.studies.grids.task_words import CHANCES

LOWEST = "lowest of all"
UNTESTED = {"validation", "train_pairs"}  # one chooses settings, of the other training has shown the scenes


class Score(NamedTuple):
    """The mean accuracy (%) over seeds of a test and a task."""

    accuracy: float
    subset: str
    task: str

    @property
    def above_chance(self) -> float:
        """The part of the way from chance to 100 %."""
        chance = CHANCES.get(self.task, 50.0)
        return (self.accuracy - chance) / (100 - chance)


def every_task(done: Runs, split: str) -> list[list[str]]:
    """A header, and a line for each row: of each task the lowest test, and the lowest of all with its name."""
    places = [place for place in done if place.split == split]
    scores = {place: list(scores_of(done[place])) for place in places}
    tasks = sorted({score.task for its in scores.values() for score in its}, key=by_task)
    return [["row", *tasks, LOWEST], *([place.row, *line(scores[place], tasks)] for place in places)]


def line(scores: Sequence[Score], tasks: Sequence[str]) -> list[str]:
    """The cells of a row; a task is only on tests that have records of it."""
    if not scores:
        return [WAITING] * (len(tasks) + 1)
    lowest = [min((score.accuracy for score in scores if score.task == task), default=None) for task in tasks]
    least = min(scores, key=lambda score: score.above_chance)
    where = f"{least.subset.replace('_', ' ')}: {least.task}"
    return [*(DASH if value is None else f"{value:.1f}" for value in lowest), f"{where} {least.accuracy:.1f}"]


def scores_of(runs: Sequence[Run]) -> Iterator[Score]:
    """The mean over seeds of every test and task that a row has records of."""
    values: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        for subset, task, its in tested(run):
            values.setdefault((subset, task), []).append(100 * its["accuracy"])
    for (subset, task), its in values.items():
        yield Score(statistics.mean(its), subset, task)


def tested(run: Run) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Subset, task and scores of what a run is tested on."""
    for subset, tasks in run.subsets.items():
        if subset not in UNTESTED:
            yield from ((subset, task, its) for task, its in tasks.items() if its["accuracy"] is not None)

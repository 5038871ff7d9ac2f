"""A cell's job: trains and evaluates the cell unless it is finished, and saves missing weights of `--keep-states`."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from menagerie.models.kept_states import STATES, Unusable, make_state_keeper, take_over, take_over_states
from menagerie.studies.runs.cell import CHECKPOINT, STATE, Job
from menagerie.studies.runs.graphs import give_readers, read_graphs
from menagerie.studies.runs.machine import settle_torch
from menagerie.studies.runs.results import read_result
from menagerie.studies.runs.together import take_steps
from menagerie.studies.runs.train import fresh_scorer, one_training, open_material, run_cell
from menagerie.studies.runs.training_log import LastRow

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer
    from menagerie.models.training.loop import Progress


WAITS = "waits for its first stage, or for shared steps"


def run_job(job: Job, report: Callable[[int, str], None], release: Callable[[], None]) -> None:
    """Train and evaluate a cell, unless it is finished or diverged, and then keep the states that it lacks.

    `report` receives each step with the last row of the training log in words, and 0 with `WAITS` while the cell waits.
    """
    latest = LastRow()

    def pass_on(step: int) -> None:
        report(step, latest.text if step else WAITS)

    with one_training(job, pass_on):
        if job.ended:  # another process may have trained it meanwhile
            return
        if read_result(job.folder) is None:
            run_cell(job, pass_on, [latest], release)
        keep_lacking(job, lambda step: report(step, "repeated for its states"))


def keep_lacking(job: Job, report: Callable[[int], None]) -> None:
    """Keep the states that a finished cell lacks, because it was trained without this option or continued shared steps.
    A fresh scorer repeats the steps; the result stays as it is."""
    from menagerie.models.training.state import StateFile

    file = StateFile(job.folder / STATES / STATE, job.id)
    while job.lacking:  # twice if an earlier command was stopped behind a step that only this one requests
        settle_torch(job.threads)
        material = open_material(job)
        graphs = read_graphs(job, material)
        scorer = fresh_scorer(job, material, report, graphs)
        give_readers(scorer, graphs)
        take_over_finished(job, scorer)
        if not (steps := job.lacking):
            break
        keep = make_state_keeper(job.folder, steps, job.cell.model, scorer)
        keep(0)

        def pass_on(progress: "Progress", keep: Callable[[int], None] = keep) -> None:
            keep(progress.step)
            report(progress.step)

        report(0)  # loaders start, so from now on the run may be ended only between steps
        take_steps(job, material, scorer, file, pass_on, max(steps))
        file.path.unlink(missing_ok=True)  # else the next round would continue behind its steps
    file.path.unlink(missing_ok=True)


def take_over_finished(job: Job, scorer: "Scorer") -> None:
    """Keep the states that need no training: those of the cell with the same training, and the cell's last weights."""
    other = replace(job, cell=job.cell.trained_as)
    take_over_states(other.folder, job.folder, job.lacking, job.cell.model, scorer)
    if job.steps in job.lacking:
        with suppress(Unusable):
            take_over(job.folder / CHECKPOINT, job.folder, job.steps, job.cell.model, scorer)

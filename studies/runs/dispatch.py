"""Runs the cells of a study where `--cluster` says: in workers of this command, or as tasks."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import clear_leftovers
from menagerie.envs.core.progress import PlainLines
from menagerie.studies.cluster.options import Cluster
from menagerie.studies.cluster.tasks import RECORD, Tasks, jobs_of, still_running
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.results import finished
from menagerie.studies.runs.train import Watch, run_cell
from menagerie.studies.runs.training_log import Latest

FOLDER = "cluster"  # subfolder of the run's folder for tasks and logs


def cell_task(job: Job, interruption: Interruption) -> None:
    """Train a cell unless it is finished."""
    if finished(job.folder) is None:
        run_interruptible(job, interruption)


def run_interruptible(job: Job, interruption: Interruption, watch: Watch | None = None) -> None:
    """Run a cell that nobody else runs. If requested to end during training, it saves its state after the step."""
    clear_leftovers(job.folder, below=True, alone=True)
    latest, lines = Latest(), PlainLines()

    def report(step: int) -> None:
        if lines.due():
            line = f"{job.name}: step {step} of {job.cell.recipe.steps}"
            print(f"{line}, {latest.text}" if latest.text else line, flush=True)
        interruption.deferred = True
        interruption.check()

    try:
        run_cell(job, report, watch, [latest], interruption.release)
    finally:
        interruption.release()  # `watch` may have stopped the run between two steps, or an error


def check_none_runs(folder: Path, ids: Collection[str]) -> None:
    """Raise if tasks of an earlier command are still running these cells."""
    running = {name: handle for name, handle in still_running(folder).items() if name in ids}
    if not running:
        return
    end = f"end them with `scancel {jobs_of(running)}`" if jobs_of(running) else "wait for them"
    raise UserError(
        f"{len(running)} tasks of this run are still queued or running; go on with the same --cluster as before, "
        f"or {end} (where they are surely over, delete {folder / RECORD})"
    )


def run_cells(
    jobs: Sequence[Job], cluster: Cluster, workers: int, out: Path, on_finished: Callable[[Job], None]
) -> None:
    """Run all jobs and call `on_finished` after each; `out` is the study's folder.

    Raises if tasks of an earlier command still run and this command wouldn't wait for them.
    """
    from menagerie.envs.core.progress import progress_bar
    from menagerie.studies.runs.local import run_jobs

    by_id = {job.cell.id: job for job in jobs}
    if cluster.engine == "none":
        check_none_runs(out / FOLDER, by_id)
        return run_jobs(jobs, workers, on_finished)
    if not by_id:
        return None
    tasks = Tasks(
        cluster,
        out / FOLDER,
        cell_task,
        by_id,
        finished=lambda name: finished(by_id[name].folder) is not None,
        label=lambda name: f"cell {by_id[name].name}",
        cores=max(job.cell.threads for job in jobs),
        gpus=int(any(job.cell.device.startswith("cuda") for job in jobs)),
        at_once=workers,
    )
    lines = PlainLines()
    with progress_bar() as bar:
        task = bar.add_task("cells", total=len(jobs))

        def end(name: str) -> None:
            on_finished(by_id[name])
            bar.update(task, advance=1)
            bar.console.print(f"finished {by_id[name].name}")

        def show(states: str) -> None:
            bar.update(task, description=f"cells ({states})" if states else "cells")
            lines.report(bar, task)

        tasks.run(end, show)
        bar.update(task, description="cells")
    return None

"""Runs the jobs of a study in workers of this command, or as tasks of a cluster (`--cluster`)."""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import clear_leftovers
from menagerie.envs.core.progress import PlainLines
from menagerie.envs.core.server_start import import_modules
from menagerie.studies.cluster.jobs import Cluster
from menagerie.studies.cluster.tasks import RECORD, Tasks, cancel_command, read_tasks, still_running
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.job import AnyJob
from menagerie.studies.runs.machine import MODULES
from menagerie.studies.runs.together import JOINED, check_joined

FOLDER = "cluster"  # of tasks and logs, in the study's folder
Follow = Callable[[Any], Iterable[AnyJob] | None]
Failed = Callable[[Any, str], None]


def run_task(job: AnyJob, interruption: Interruption, processes: int = 1) -> None:
    """Run a job in a task, unless the job has already ended. `processes` is the number of processes that share a
    training."""
    if job.ended:
        return
    trains = isinstance(job, Job)
    if trains:
        import_modules(MODULES)
    if trains and processes > 1:
        from menagerie.studies.runs.task_processes import run_in_processes

        run_in_processes(partial(run_interruptible, job, interruption), processes, job.threads)
    else:
        run_interruptible(job, interruption)


def run_interruptible(job: AnyJob, interruption: Interruption) -> None:
    """Run a job that no other process runs. If its end is requested, it ends after its current step; before its first
    step, and after it has called `release`, at once."""
    clear_folder(job)
    lines = PlainLines()

    def report(step: int, text: str = "") -> None:
        if lines.due():
            line = f"{job.name}: step {step} of {job.steps}"
            print(f"{line}, {text}" if text else line, flush=True)
        interruption.deferred = True
        interruption.check()

    try:
        job.run(report, interruption.release)
    finally:
        interruption.release()  # also after an error between two steps


def clear_folder(job: AnyJob) -> None:
    """Delete temporary files of killed processes in a job's folder. A cell's job does so itself, under a lock, because
    a job that starts from the cell may be writing there."""
    if not isinstance(job, Job):
        clear_leftovers(job.folder, below=True, alone=True)


def check_none_runs(folder: Path, ids: Collection[str]) -> None:
    """Raise if tasks of an earlier command are still queued or running for these jobs."""
    if not read_tasks(folder).keys() & set(ids):
        return
    running = {name: handle for name, handle in still_running(folder).items() if name in ids}
    if not running:
        return
    end = f"end them with `{cancel_command(running)}`" if cancel_command(running) else "wait for them"
    raise UserError(
        f"{len(running)} tasks of this run are still queued or running; continue with the same --cluster as before, "
        f"or {end} (if they have surely ended, delete {folder / RECORD})"
    )


def run_jobs(
    jobs: Iterable[AnyJob],
    cluster: Cluster,
    workers: int,
    out: Path,
    on_finished: Follow,
    on_failed: Failed | None = None,
    grows: bool = False,
) -> None:
    """Run all jobs that haven't ended, `workers` at a time; `out` is the study's folder.

    `on_finished(job)` is called when a job has ended, at once if it had ended before. It may return further jobs; those
    that were begun already are skipped. A job has failed if it raises a `UserError` or its process dies, unless it has
    `ended` with that. Then `on_failed(job, reason)` is called; without `on_failed` this command ends, at once here, on
    a cluster when the other jobs have ended. `grows` makes progress messages say that more jobs may follow. Raises if
    tasks of an earlier command still run that this one wouldn't wait for, and in a process of torchrun that isn't
    connected to the others.
    """
    from menagerie.studies.runs.local import run_here

    every: dict[str, AnyJob] = {}

    def new_jobs(more: Iterable[AnyJob]) -> list[AnyJob]:
        new = {job.id: job for job in more if job.id not in every}
        if cluster.engine == "none":
            check_none_runs(out / FOLDER, new)
        every.update(new)
        return list(new.values())

    def follow(job: AnyJob) -> list[AnyJob]:
        return new_jobs(on_finished(job) or ())

    check_joined()
    first = new_jobs(jobs)
    if first and JOINED:
        run_in_turn(first, follow, on_failed, grows)
    elif first and cluster.engine == "none":
        run_here(first, workers, follow, on_failed, grows)
    elif first:
        run_tasks(every, cluster, workers, out, follow, on_failed, grows)


def run_in_turn(
    first: list[AnyJob], follow: Callable[[AnyJob], list[AnyJob]], on_failed: Failed | None, grows: bool
) -> None:
    """Run jobs, and those that `follow` adds after each, one after another in this process, which the other processes
    of torchrun train together with."""
    from menagerie.envs.core.progress import progress_bar
    from menagerie.studies.runs.local import fail_command

    waiting, done, lines = list(first), 0, PlainLines(grows=grows)
    with progress_bar() as bar:
        task = bar.add_task("runs")

        def report(step: int, text: str = "") -> None:
            bar.update(task, completed=done + step, description=f"{job.name}: {text}" if text else job.name)
            lines.report(bar, task)

        while waiting:
            bar.update(task, total=done + sum(job.steps for job in waiting))
            job = waiting.pop(0)
            try:
                if not job.ended:
                    clear_folder(job)
                    job.run(report, lambda: None)
            except UserError as error:
                if not job.ended:
                    (on_failed or fail_command)(job, str(error))
                    continue
            done += job.steps
            waiting += follow(job)
            bar.console.print(job.outcome, markup=False, soft_wrap=True)


def run_tasks(
    every: dict[str, AnyJob],
    cluster: Cluster,
    workers: int,
    out: Path,
    follow: Callable[[AnyJob], list[AnyJob]],
    on_failed: Failed | None,
    grows: bool,
) -> None:
    """Run the jobs in `every` (by id) as tasks, and also those that `follow` adds to `every` when a job has
    finished."""
    from menagerie.envs.core.progress import progress_bar

    tasks = Tasks(
        cluster,
        out / FOLDER,
        partial(run_task, processes=cluster.slurm.processes),
        dict(every),
        finished=lambda name: every[name].ended,
        label=lambda name: every[name].name,
        at_once=workers,
        on_failed=on_failed and (lambda name, reason: on_failed(every[name], reason)),
    )
    tasks.cores, tasks.gpus = resources(every.values(), cluster.slurm.processes)
    lines = PlainLines(grows=grows)
    with progress_bar() as bar:
        task = bar.add_task("runs", total=len(every))

        def end(name: str) -> None:
            new = follow(every[name])
            tasks.cores, tasks.gpus = resources(every.values(), cluster.slurm.processes)
            tasks.add({job.id: job for job in new})
            bar.update(task, advance=1, total=len(every))
            bar.console.print(every[name].outcome, markup=False, soft_wrap=True)

        def show(states: str) -> None:
            bar.update(task, description=f"runs ({states})" if states else "runs")
            lines.report(bar, task)

        tasks.run(end, show)
        bar.update(task, description="runs")


def resources(jobs: Collection[AnyJob], processes: int) -> tuple[int, int]:
    """Return the cores and GPUs that a task of `processes` processes needs."""
    cores = max(1, *(job.threads for job in jobs))
    return processes * cores, processes * any(job.device.startswith("cuda") for job in jobs)

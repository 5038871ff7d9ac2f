"""Runs the jobs of a study: in worker processes of this command, in those of torchrun, or as tasks of a cluster.

A job runs once the jobs that it needs have ended, and only if no other command runs it. Wherever jobs run, one loop
starts them, shows their progress and asks what follows from each (menagerie.studies.runs.runners).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import Incomplete, UserError
from menagerie.envs.core.progress import PlainLines, progress_bar
from menagerie.studies.cluster.jobs import Cluster
from menagerie.studies.runs.folder import command_line
from menagerie.studies.runs.job import AnyJob
from menagerie.studies.runs.runners import ClusterTasks, FirstProcess, Runner, Workers
from menagerie.studies.runs.together import JOINED, check_joined

FOLDER = "cluster"  # of tasks and logs, in the study's folder
Follow = Callable[[Any], Iterable[AnyJob] | None]


@dataclass
class Schedule:
    """Which jobs wait, run and have ended."""

    known: dict[str, AnyJob] = field(default_factory=dict)
    waiting: list[AnyJob] = field(default_factory=list)
    running: dict[str, Any] = field(default_factory=dict)
    ended: list[AnyJob] = field(default_factory=list)
    """Jobs that have ended, with a result or without, and of which `on_finished` doesn't know yet."""
    over: set[str] = field(default_factory=set)
    """Jobs that have ended."""
    held: list[AnyJob] = field(default_factory=list)
    """Jobs that another command runs."""
    failed: dict[str, str] = field(default_factory=dict)
    """The reasons of failed jobs, by their ids."""
    needs: dict[str, set[str]] = field(default_factory=dict)
    """The jobs that have to end before a job can run, by its id."""

    def add(self, jobs: Iterable[AnyJob]) -> None:
        """Add jobs, and before each those that it needs. Known ones are skipped."""
        for job in jobs:
            if job.id in self.known:
                continue
            if over := job.ended:
                needs = []
            else:
                needs = [need for need in job.needs if not need.ended]
                self.add(needs)
            self.known[job.id], self.needs[job.id] = job, {need.id for need in needs}
            (self.ended if over else self.waiting).append(job)

    def ready(self) -> list[AnyJob]:
        """Return the jobs that may run now."""
        return [job for job in self.waiting if self.needs[job.id] <= self.over]

    def begin(self, jobs: list[AnyJob]) -> list[AnyJob]:
        """Take jobs out of those that wait; returns the ones that no other command runs."""
        ids = {job.id for job in jobs}
        self.waiting = [job for job in self.waiting if job.id not in ids]
        held = {job.id for job in jobs if job.held}
        self.held += [job for job in jobs if job.id in held]
        return [job for job in jobs if job.id not in held]

    def end(self, runner: Runner) -> None:
        """Sort the jobs that have stopped running into ended, held and failed ones."""
        for name, handle in list(self.running.items()):
            if not handle.done():
                continue
            job, reason = self.known[name], runner.reason(self.running.pop(name))
            if job.ended:
                self.ended.append(job)
            elif job.held:
                self.held.append(job)
            else:
                self.failed[name] = reason or "it ended without a result"

    def look_again(self) -> None:
        """Find the jobs that another command has ended meanwhile."""
        self.ended = [job for job in self.held if job.ended]
        self.held = [job for job in self.held if not job.ended]


@dataclass
class Shown:
    """A progress bar of all jobs."""

    schedule: Schedule
    runner: Runner
    bar: Any
    lines: PlainLines

    def __post_init__(self) -> None:
        self.task = self.bar.add_task("runs")

    def show(self) -> None:
        """Show what is done, in steps if the runner knows the steps of running jobs, else in jobs."""
        jobs, counts = self.schedule.known.values(), self.runner.counts_steps
        sizes = {job.id: job.steps if counts else 1 for job in jobs}
        done = sum(sizes[name] for name in self.schedule.over)
        done += sum(self.runner.steps.get(name, 0) for name in self.schedule.running)
        text = f"{len(jobs)} runs{' so far' * self.lines.grows}{', steps' * counts}"
        self.bar.update(self.task, description=text, total=sum(sizes.values()), completed=done)
        self.lines.report(self.bar, self.task, lambda: self.runner.line(self.schedule.running.values()))


def run_jobs(
    jobs: Iterable[AnyJob], cluster: Cluster, workers: int, out: Path, on_finished: Follow, grows: bool = False
) -> None:
    """Run all jobs that haven't ended, `workers` at a time; `out` is the study's folder.

    `on_finished(job)` is called when a job has ended, at once if it had ended before. It may return further jobs; those
    that were begun already are skipped. A job has failed if it raises a `UserError` or its process dies, unless it has
    `ended` with that. Then this command ends, at once here, on a cluster when the other jobs have ended. `grows` makes
    progress messages say that more jobs may follow. Raises `Incomplete` at the end if another command runs some of the
    jobs, and a `UserError` in a process of torchrun that isn't connected to the others.
    """
    check_joined()
    schedule = Schedule()
    schedule.add(jobs)
    if not schedule.known:
        return
    runner: Runner
    if JOINED:
        runner = FirstProcess()
    elif cluster.engine == "none":
        runner = Workers(workers, max(job.threads for job in schedule.known.values()))
    else:
        runner = ClusterTasks(cluster, out / FOLDER, workers)
    with progress_bar() as bar:
        shown = Shown(schedule, runner, bar, PlainLines(grows=grows))
        runner.show = shown.show
        try:
            run_schedule(schedule, runner, shown, on_finished)
        except BaseException:
            runner.stop(schedule.running.values())
            raise
        runner.close()
    check_all_ended(schedule)


def run_schedule(schedule: Schedule, runner: Runner, shown: Shown, on_finished: Follow) -> None:
    """Run jobs until none is left that may run, and those that `on_finished` returns for each that has ended."""
    while schedule.ready() or schedule.running or schedule.ended:
        while chosen := runner.choose(schedule.ready(), len(schedule.running)):
            if free := schedule.begin(chosen):
                schedule.running |= dict(zip((job.id for job in free), runner.start(free), strict=True))
        # After the next jobs have started, because it takes seconds.
        for job in [schedule.ended.pop(0) for _ in list(schedule.ended)]:
            schedule.over.add(job.id)
            schedule.add(on_finished(job) or ())
            shown.bar.console.print(job.outcome, markup=False, soft_wrap=True)
        shown.show()
        runner.wait(schedule.running.values())
        schedule.end(runner)
        if schedule.failed and not runner.patient:
            check_all_ended(schedule)
        if not (schedule.running or schedule.ready() or schedule.ended):
            schedule.look_again()


def check_all_ended(schedule: Schedule) -> None:
    """Raise if jobs failed, and `Incomplete` if another command runs jobs."""
    if schedule.failed:
        name, reason = next(iter(schedule.failed.items()))
        more = f"; {len(schedule.failed) - 1} more failed" if len(schedule.failed) > 1 else ""
        raise UserError(f"{schedule.known[name].name}: {reason}{more} (finished runs are kept)")
    if schedule.held:
        names = ", ".join(job.name for job in schedule.held[:3]) + ", …" * (len(schedule.held) > 3)
        later = f", for which {len(schedule.waiting)} others wait" if schedule.waiting else ""
        raise Incomplete(
            f"another command runs {len(schedule.held)} of the runs ({names}){later}; all others are finished; "
            f"when it has ended, repeat {command_line()}"
        )

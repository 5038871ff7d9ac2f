"""Runs the jobs of a study, wherever they run: one loop starts them, shows their progress and asks what follows. A job
runs once the jobs that it needs have ended, and only if no other command runs it."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import Incomplete, UserError
from menagerie.envs.core.progress import PlainLines, progress_bar
from menagerie.studies.runs.cell import AnyJob
from menagerie.studies.runs.folder import command_line
from menagerie.studies.runs.runners import ClusterTasks, FirstProcess, Runner, Workers
from menagerie.studies.runs.slurm import Cluster
from menagerie.studies.runs.torchrun import JOINED, check_joined

FOLDER = "cluster"  # of tasks and logs, in the study's folder
Follow = Callable[[Any], Iterable[AnyJob] | None]


class Schedule:
    """Which jobs wait, run and have ended."""

    def __init__(self, jobs: Iterable[AnyJob]) -> None:
        self.known: dict[str, AnyJob] = {}
        self.waiting: dict[str, set[str]] = {}  # the jobs that have to end before a waiting job can run, by their ids
        self.running: dict[str, Any] = {}
        self.ended: list[AnyJob] = []  # with a result or without; `on_finished` doesn't know of them yet
        self.over: set[str] = set()  # all other jobs that have ended
        self.held: list[AnyJob] = []  # jobs that another command runs
        self.failed: dict[str, str] = {}  # the reasons of failed jobs
        self.add(jobs)

    def add(self, jobs: Iterable[AnyJob]) -> None:
        """Add jobs, and before each those that it needs. Known ones are skipped."""
        for job in jobs:
            if job.id in self.known:
                continue
            self.known[job.id] = job
            if job.ended:
                self.ended.append(job)
                continue
            needs = [need for need in job.needs if not need.ended]
            self.add(needs)
            self.waiting[job.id] = {need.id for need in needs}

    def ready(self) -> list[AnyJob]:
        """Return the jobs that may run now."""
        return [self.known[name] for name, needs in self.waiting.items() if needs <= self.over]

    def start(self, runner: Runner) -> None:
        """Start the jobs for which there is room, unless another command runs them."""
        while chosen := runner.choose(self.ready(), len(self.running)):
            held = [job for job in chosen if job.held]
            self.held += held
            for job in chosen:
                del self.waiting[job.id]
            if free := [job for job in chosen if job not in held]:
                self.running |= dict(zip((job.id for job in free), runner.start(free), strict=True))

    def follow(self, on_finished: Follow) -> list[AnyJob]:
        """Add the jobs that follow from those that have ended, and return the latter."""
        followed, self.ended = self.ended, []
        for job in followed:
            self.over.add(job.id)
            self.add(on_finished(job) or ())
        return followed

    def collect(self, runner: Runner) -> None:
        """Sort stopped jobs into ended, held and failed ones; if nothing is left, ask which held ones ended."""
        for name in [name for name, handle in self.running.items() if handle.done()]:
            job, reason = self.known[name], runner.reason(self.running.pop(name))
            if job.ended:
                self.ended.append(job)
            elif job.held:
                self.held.append(job)
            else:
                self.failed[name] = reason or "it ended without a result"
        if not self.active:
            self.ended = [job for job in self.held if job.ended]
            self.held = [job for job in self.held if job not in self.ended]

    @property
    def active(self) -> bool:
        return bool(self.running or self.ended or self.ready())

    def check(self) -> None:
        """Raise if jobs failed, and `Incomplete` if another command runs jobs."""
        if self.failed:
            name, reason = next(iter(self.failed.items()))
            more = f"; {len(self.failed) - 1} more failed" if len(self.failed) > 1 else ""
            raise UserError(f"{self.known[name].name}: {reason}{more} (finished runs are kept)")
        if self.held:
            names = ", ".join(job.name for job in self.held[:3]) + ", …" * (len(self.held) > 3)
            later = f", for which {len(self.waiting)} others wait" if self.waiting else ""
            raise Incomplete(
                f"another command runs {len(self.held)} of the runs ({names}){later}; all others are finished; "
                f"when it has ended, repeat {command_line()}"
            )


def run_jobs(
    jobs: Iterable[AnyJob], cluster: Cluster, workers: int, out: Path, on_finished: Follow, grows: bool = False
) -> None:
    """Run all jobs that haven't ended, `workers` at a time; `out` is the study's folder.

    `on_finished(job)` is called when a job has ended, at once if it had ended before, and may return further jobs. A
    job has failed if it raises a `UserError` or its process dies, unless it has `ended` with that. Then this command
    ends, at once here, on a cluster when the other jobs have ended. `grows` makes progress messages say that more jobs
    may follow. Raises `Incomplete` at the end if another command runs some of the jobs.
    """
    check_joined()
    schedule = Schedule(jobs)
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
        runner.show = progress_of(schedule, runner, bar, grows)
        try:
            while schedule.active:
                schedule.start(runner)
                for job in schedule.follow(on_finished):  # after the next jobs have started, because it takes seconds
                    bar.console.print(job.outcome, markup=False, soft_wrap=True)
                runner.show()
                runner.wait(schedule.running.values())
                schedule.collect(runner)
                if schedule.failed and not runner.elsewhere:
                    schedule.check()
        finally:
            runner.stop(schedule.running.values())
    schedule.check()


def progress_of(schedule: Schedule, runner: Runner, bar: Any, grows: bool) -> Callable[[], None]:
    """Return what shows how much is done: in steps if the runner knows the steps of running jobs, else in jobs."""
    task, lines, counts = bar.add_task("runs"), PlainLines(grows=grows), not runner.elsewhere

    def show() -> None:
        sizes = {name: job.steps if counts else 1 for name, job in schedule.known.items()}
        done = sum(sizes[name] for name in schedule.over)
        done += sum(runner.steps.get(name, 0) for name in schedule.running)
        text = f"{len(sizes)} runs{' so far' * grows}{', steps' * counts}"
        bar.update(task, description=text, total=sum(sizes.values()), completed=done)
        lines.report(bar, task, lambda: runner.line(schedule.running.values()))

    return show

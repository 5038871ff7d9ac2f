"""Runs jobs in worker processes and shows their progress.

Each worker runs one job at a time with a fixed number of threads, so that results don't depend on how many run at once.
Workers are kept for the next job, because loading torch takes seconds.
"""

import queue
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from types import FrameType
from typing import Any, NamedTuple

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.core.processes import call_in_worker, end_processes, end_with_parent, workers_context
from menagerie.envs.core.progress import PlainLines, progress_bar
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.runs.job import AnyJob
from menagerie.studies.runs.machine import start_server

POLL_SECONDS = 0.2
LEAVE_SECONDS = 5.0  # after which an idle worker that hasn't ended is killed
DONE = -1  # in place of a step: the job has ended
MOST_NAMED = 4  # jobs whose loss is in a progress message


class ProgressMessage(NamedTuple):
    """A message on the progress of a job."""

    step: int
    text: str


def worker_loop(inbox: Any, messages: Any) -> None:
    """Body of a worker process: run jobs from `inbox` until None arrives; send (job, News), (job, DONE) or (job,
    error)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends the workers
    end_with_parent()
    while job := inbox.get():
        messages.put((job.id, run_one(job, messages)))


def run_one(job: AnyJob, messages: Any) -> int | str:
    """Run one job; returns `DONE`, or the message of a `UserError`. Any other error ends the process."""
    ending, sent, message, stopped = EndRequest(), 0.0, DONE, False
    # With loaders or loggers the run must end in order; without, the signal may end the process at once.
    signal.signal(signal.SIGTERM, ending.request if job.has_processes else signal.SIG_DFL)

    def report(step: int, text: str = "") -> None:
        nonlocal sent
        ending.deferred = True  # again, if the job takes steps after it was released
        ending.check()
        if time.monotonic() - sent > POLL_SECONDS:
            sent = time.monotonic()
            messages.put((job.id, ProgressMessage(step, text)))

    try:
        call_in_worker(job.run, report, ending.release)
        ending.check()
    except UserError as error:
        message = str(error)
    except Stopped:
        stopped = True
    except BaseException:
        traceback.print_exc()
        sys.exit(1)
    if stopped:  # by now its loaders have ended
        messages.cancel_join_thread()  # the parent doesn't read any more
        sys.exit(143)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return message


@dataclass
class EndRequest(Interruption):
    """A request by SIGTERM to end a run that has child processes. Such a run must not be killed while these start or
    send a batch, so it ends after its current step and saves its state. Further requests are ignored."""

    deferred: bool = True

    def request(self, number: int, frame: FrameType | None) -> None:
        if not self.requested:
            super().request(number, frame)


@dataclass
class Worker:
    """A process, and the job that it runs."""

    process: BaseProcess
    inbox: Any
    job: AnyJob | None = None
    group: str = ""
    """Group of its last job."""


@dataclass
class Pool:
    """The running worker processes."""

    workers: list[Worker] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    news: dict[str, ProgressMessage] = field(default_factory=dict)
    """The last news of each job, by its id."""

    def __post_init__(self) -> None:
        self.context = workers_context()
        self.messages = self.context.Queue()

    @property
    def busy(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.job]

    @property
    def idle(self) -> list[Worker]:
        return [worker for worker in self.workers if not worker.job]

    def choose(self, waiting: Sequence[AnyJob]) -> int:
        """Return the position of the next job: if possible one whose group an idle worker has loaded, else one whose
        group no busy worker has loaded."""
        loaded, held = ({worker.group for worker in which} - {""} for which in (self.idle, self.busy))
        return min(range(len(waiting)), key=lambda k: (waiting[k].group not in loaded, waiting[k].group in held))

    def fill(self, waiting: list[AnyJob], most: int) -> None:
        """Start waiting jobs, until `most` run."""
        while waiting and len(self.busy) < most:
            self.start(waiting.pop(self.choose(waiting)))

    def start(self, job: AnyJob) -> None:
        """Give `job` to an idle worker, if possible one that has loaded its group; if none is idle, to a new worker."""
        worker = min(self.idle, key=lambda worker: worker.group != job.group, default=None)
        if worker is None:
            inbox = self.context.Queue()
            # A daemon couldn't start loaders.
            worker = Worker(self.context.Process(target=worker_loop, args=(inbox, self.messages)), inbox)
            self.workers.append(worker)  # before it starts, so that Ctrl-C in between ends it too
            worker.process.start()
        worker.job, worker.group = job, job.group
        ForkingPickler.dumps(job)  # raises here for what can't be pickled, which a queue would drop
        worker.inbox.put(job)

    def stop(self) -> None:
        """End all workers; their last saved states stay. Idle workers may end by themselves first, so that their
        libraries free what they hold."""
        for worker in self.idle:
            worker.inbox.put(None)
        for worker in self.idle:
            worker.process.join(LEAVE_SECONDS)
        end_processes([worker.process for worker in self.workers])

    def listen(self) -> None:
        """Take all messages of jobs, after waiting a moment for the first."""
        try:
            cell, message = self.messages.get(timeout=POLL_SECONDS)
            while True:
                if message == DONE:
                    self.done.add(cell)
                elif isinstance(message, str):
                    self.errors[cell] = message
                else:
                    self.news[cell] = message
                cell, message = self.messages.get_nowait()
        except queue.Empty:
            return

    def losses(self) -> str:
        """Write the losses of the first few running jobs, for progress bars."""
        known = {worker.job.name: self.news.get(worker.job.id, ProgressMessage(0, "")).text for worker in self.busy}
        return "; ".join([f"{name}: {text}" for name, text in known.items() if text][:MOST_NAMED])

    def reap(self) -> list[tuple[AnyJob, str]]:
        """Return the jobs that ended since the last call, each with the reason if it failed."""
        if any(worker.process.exitcode is not None for worker in self.workers):
            self.listen()  # its last message may still be in the queue
        ended = []
        for worker in self.busy:
            job, code = worker.job, worker.process.exitcode
            if job.id in self.done or job.id in self.errors or code is not None:
                reason = "" if job.id in self.done else self.errors.get(job.id, why_ended(code))
                ended.append((job, reason if reason and not job.ended else ""))
                worker.job = None
        self.workers = [worker for worker in self.workers if worker.process.exitcode is None]
        return ended


def why_ended(code: int | None) -> str:
    """Return why a process ended without a message, from its exit status."""
    killed = ": killed, as the system does when memory is short; try fewer --workers" * (code == -signal.SIGKILL)
    return f"its process ended with status {code}{killed}"


def fail_command(job: AnyJob, reason: str) -> None:
    """End the command with a job's failure."""
    raise UserError(f"{job.name}: {reason} (finished runs are kept)")


@dataclass
class Steps:
    """A progress bar of the steps of all jobs."""

    bar: Any
    lines: PlainLines
    done: dict[str, int] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.task = self.bar.add_task("runs")

    def add(self, jobs: Iterable[AnyJob]) -> None:
        self.totals |= {job.id: job.steps for job in jobs}
        runs = f"{len(self.totals)} runs{' so far' * self.lines.grows}"
        self.bar.update(self.task, description=f"{runs}, steps", total=sum(self.totals.values()))

    def show(self, pool: Pool) -> None:
        for job, news in pool.news.items():
            self.done[job] = max(self.done.get(job, 0), news.step)
        self.bar.update(self.task, completed=sum(self.done.values()))
        self.lines.report(self.bar, self.task, pool.losses)


def run_here(
    jobs: Sequence[AnyJob],
    workers: int,
    follow: Callable[[AnyJob], Sequence[AnyJob]],
    on_failed: Callable[[AnyJob, str], None] | None = None,
    grows: bool = False,
) -> None:
    """Run jobs, `workers` at a time, and also the jobs that `follow` returns for each that has ended. If there may be
    such jobs (`grows`), progress messages give totals as lower bounds."""
    start_server(jobs[0].threads)
    pool, waiting, ended = Pool(), list[AnyJob](), list[AnyJob]()
    try:
        with progress_bar() as bar:
            steps = Steps(bar, PlainLines(grows=grows))

            def take(new: Sequence[AnyJob]) -> None:
                steps.add(new)
                for job in new:
                    (ended if job.ended else waiting).append(job)

            take(jobs)
            while waiting or pool.busy or ended:
                pool.fill(waiting, workers)
                pool.listen()
                for job in [ended.pop(0) for _ in list(ended)]:
                    steps.done[job.id] = job.steps
                    take(follow(job))
                    bar.console.print(job.outcome, markup=False, soft_wrap=True)
                steps.show(pool)
                for job, reason in pool.reap():  # before `follow`, which takes seconds, so that their workers continue
                    if reason:
                        (on_failed or fail_command)(job, reason)
                    else:
                        ended.append(job)
    finally:
        pool.stop()

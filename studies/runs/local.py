"""Runs cells in worker processes, shows their progress, and keeps their results.

Each worker runs one cell at a time with a fixed number of threads, so that results don't depend on the number of
workers; it is reused for the next cell, because loading torch takes seconds.
"""

import queue
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, NamedTuple

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.core.processes import call, end_processes, end_with_parent, workers_context
from menagerie.envs.core.progress import PlainLines, progress_bar
from menagerie.studies.cluster.worker import Interruption
from menagerie.studies.runs.cell import Job
from menagerie.studies.runs.machine import start_server
from menagerie.studies.runs.training_log import Latest

POLL_SECONDS = 0.2
DONE = -1  # takes the place of a step when the cell is finished

# most cells whose loss is in a line of progress
MOST_NAMED = 4


class News(NamedTuple):
    """A message on the progress of a cell's training."""

    step: int
    text: str


def work(inbox: Any, messages: Any) -> None:
    """The body of a worker process: run cells from `inbox`, and send (cell, News), (cell, DONE) or (cell, error)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the workers
    end_with_parent()
    while True:
        job = inbox.get()
        run_one(job, messages)
        messages.put((job.cell.id, DONE))


def run_one(job: Job, messages: Any) -> None:
    """Run a cell; a `UserError` ends the process."""
    from menagerie.studies.runs.train import run_cell

    latest, ending, sent = Latest(), Ending(), 0.0
    # Loaders and loggers must end with the run; without any, the signal may end the process at once.
    signal.signal(signal.SIGTERM, ending.request if job.execution.loaders or job.execution.log else signal.SIG_DFL)

    def report(step: int) -> None:
        nonlocal sent
        ending.check()
        if time.monotonic() - sent > POLL_SECONDS:
            sent = time.monotonic()
            messages.put((job.cell.id, News(step, latest.text)))

    try:
        call(run_cell, job, report, loggers=[latest], after_training=ending.release)
        ending.check()
    except UserError as error:
        messages.put((job.cell.id, str(error)))
        messages.close()
        messages.join_thread()
        sys.exit(2)
    except Stopped:
        stopped = True
    except BaseException:
        traceback.print_exc()
        sys.exit(1)
    else:
        stopped = False
    if stopped:  # its loaders have ended by now
        messages.cancel_join_thread()  # nobody reads it any more
        sys.exit(143)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@dataclass
class Ending(Interruption):
    """SIGTERM to a run that has processes of its own, which must not be killed while they start or pass on a batch: the
    run ends after its current step, saves its state, and accepts only one request."""

    deferred: bool = True

    def request(self, number: int, frame: FrameType | None) -> None:
        if not self.requested:
            super().request(number, frame)


@dataclass
class Worker:
    """A worker process, and the cell that it runs."""

    process: BaseProcess
    inbox: Any
    job: Job | None = None


@dataclass
class Pool:
    """The running worker processes."""

    workers: list[Worker] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    news: dict[str, News] = field(default_factory=dict)
    """Last message of each cell."""

    def __post_init__(self) -> None:
        self.context = workers_context()
        self.messages = self.context.Queue()

    @property
    def busy(self) -> list[Worker]:
        """Workers with a cell."""
        return [worker for worker in self.workers if worker.job]

    def start(self, job: Job) -> None:
        """Give `job` to a worker without one, or to a new one."""
        worker = next((worker for worker in self.workers if not worker.job), None)
        if worker is None:
            inbox = self.context.Queue()
            # daemons can't start loaders
            worker = Worker(self.context.Process(target=work, args=(inbox, self.messages)), inbox)
            self.workers.append(worker)  # before the start, so that Ctrl-C can't leave it waiting for work
            worker.process.start()
        worker.job = job
        worker.inbox.put(job)

    def stop(self) -> None:
        """End all workers; their last saved states stay."""
        end_processes([worker.process for worker in self.workers])

    def listen(self) -> None:
        """Process messages of cells, waiting a moment for them."""
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
        """The losses of the first few cells in training, for progress bars."""
        known = {worker.job.name: self.news.get(worker.job.cell.id, News(0, "")).text for worker in self.busy}
        return "; ".join([f"{name}: {text}" for name, text in known.items() if text][:MOST_NAMED])

    def reap(self) -> list[Job]:
        """Jobs that ended since the last call; raises for a failed one."""
        if any(worker.process.exitcode is not None for worker in self.workers):
            self.listen()  # the reason may not have arrived yet
        ended = []
        for worker in self.busy:
            if worker.job.cell.id in self.done:
                ended.append(worker.job)
                worker.job = None
            elif worker.process.exitcode is not None:
                reason = self.errors.get(worker.job.cell.id, f"its process ended with status {worker.process.exitcode}")
                raise UserError(f"cell {worker.job.name}: {reason} (finished cells are kept)")
        return ended


def run_jobs(jobs: Sequence[Job], workers: int, on_finished: Callable[[Job], None]) -> None:
    """Run all jobs, `workers` at a time; `on_finished` is called after each."""
    if not jobs:
        return
    start_server(jobs[0].cell.threads)
    waiting = list(jobs)
    steps = {job.cell.id: 0 for job in jobs}
    totals = {job.cell.id: job.cell.recipe.steps for job in jobs}
    pool, lines = Pool(), PlainLines()
    try:
        with progress_bar() as bar:
            task = bar.add_task(f"training {len(jobs)} cells, steps", total=sum(totals.values()))
            ended: list[Job] = []
            while waiting or pool.busy or ended:
                while waiting and len(pool.busy) < workers:
                    pool.start(waiting.pop(0))
                pool.listen()
                for cell, news in pool.news.items():
                    steps[cell] = max(steps[cell], news.step)
                for job in ended:
                    steps[job.cell.id] = totals[job.cell.id]
                    on_finished(job)
                    bar.console.print(f"finished {job.name}")
                bar.update(task, completed=sum(steps.values()))
                lines.report(bar, task, pool.losses)
                ended = pool.reap()  # give their workers new jobs before `on_finished`, which takes seconds
    finally:
        pool.stop()

"""Runs cells in worker processes, shows how far they are, and keeps what is finished.

Each cell has a process of its own with a fixed number of threads, so that results don't
depend on how many run at once. A worker whose parent is gone stops by itself.
"""

import multiprocessing
import os
import queue
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from envs.common.errors import UserError
from envs.common.progress import PlainLines, progress_bar
from studies.runs.cell import Job, run_cell

POLL_SECONDS = 0.2


def work(job: Job, messages: Any, parent: int) -> None:
    """Body of a worker process: run one cell and tell the parent of each step."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends the workers

    def report(step: int) -> None:
        if os.getppid() != parent:
            os._exit(1)
        messages.put((job.cell.id, step))

    try:
        run_cell(job, report)
    except UserError as error:
        messages.put((job.cell.id, str(error)))
        messages.close()
        messages.join_thread()
        sys.exit(2)
    except BaseException:
        traceback.print_exc()
        sys.exit(1)


@dataclass
class Pool:
    """The processes that run now."""

    context: Any = field(default_factory=lambda: multiprocessing.get_context("spawn"))
    running: dict[str, tuple[Job, Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.messages = self.context.Queue()

    def start(self, job: Job) -> None:
        """Start a worker for `job`."""
        process = self.context.Process(target=work, args=(job, self.messages, os.getpid()), daemon=True)
        process.start()
        self.running[job.cell.id] = (job, process)

    def stop(self) -> None:
        """End all workers; their last saved states stay."""
        for _, process in self.running.values():
            process.terminate()
        for _, process in self.running.values():
            process.join()

    def steps(self) -> dict[str, int]:
        """The last step that each worker told since the last call, waiting a moment for news."""
        told: dict[str, int] = {}
        try:
            cell, message = self.messages.get(timeout=POLL_SECONDS)
            while True:
                (self.errors if isinstance(message, str) else told)[cell] = message
                cell, message = self.messages.get_nowait()
        except queue.Empty:
            return told

    def reap(self) -> list[Job]:
        """Jobs that ended since the last call; a failed one raises."""
        ended = [(job, process.exitcode) for job, process in self.running.values() if process.exitcode is not None]
        if any(status for _, status in ended):
            self.steps()  # the reason may still be under way
        for job, status in ended:
            del self.running[job.cell.id]
            if status:
                reason = self.errors.get(job.cell.id, f"its process ended with status {status}")
                raise UserError(f"cell {job.name}: {reason} (finished cells are kept)")
        return [job for job, _ in ended]


def run_jobs(jobs: Sequence[Job], workers: int, on_finished: Callable[[Job], None]) -> None:
    """Run all jobs, `workers` at a time; `on_finished` is called after each."""
    if not jobs:
        return
    waiting = list(jobs)
    steps = {job.cell.id: 0 for job in jobs}
    totals = {job.cell.id: job.cell.recipe.steps for job in jobs}
    pool, lines = Pool(), PlainLines()
    try:
        with progress_bar() as bar:
            task = bar.add_task(f"training {len(jobs)} cells, steps", total=sum(totals.values()))
            while waiting or pool.running:
                while waiting and len(pool.running) < workers:
                    pool.start(waiting.pop(0))
                steps |= pool.steps()
                for job in pool.reap():
                    steps[job.cell.id] = totals[job.cell.id]
                    on_finished(job)
                    bar.console.print(f"finished {job.name}")
                bar.update(task, completed=sum(steps.values()))
                lines.report(bar, task)
    finally:
        pool.stop()

"""Where jobs run: worker processes of this command, this process as the first of torchrun's, or tasks of a cluster.
Results don't depend on it: each job runs alone in its process, with a fixed number of threads."""

import contextlib
import logging
import multiprocessing
import queue
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.core.files import clear_leftovers
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.processes import call_in_worker, end_processes, end_with_parent, workers_context
from menagerie.envs.core.progress import PlainLines
from menagerie.envs.core.server_start import import_modules
from menagerie.studies.runs.cell import AnyJob, Job, Report
from menagerie.studies.runs.machine import MODULES, start_server
from menagerie.studies.runs.slurm import Cluster, Interruption, Task, check_folder, end_tasks, reason_of_end, submit
from menagerie.studies.runs.torchrun import run_in_processes
from menagerie.studies.runs.train import run_cell

if TYPE_CHECKING:
    from submitit import Job as SubmittedJob

POLL_SECONDS, CLUSTER_POLL_SECONDS = 0.2, 1.0
LEAVE_SECONDS = 5.0  # after which an idle worker that hasn't ended is killed
GRACE = {"local": 0.5, "slurm": 15.0}  # seconds after a task's end until its result is visible on a network file system
MOST_NAMED = 4  # jobs whose loss is in a progress message


def run_job(job: AnyJob, report: Report, release: Callable[[], None]) -> None:
    """Run a job of any kind in this process; see `AnyJob.run`."""
    if isinstance(job, Job):
        run_cell(job, report, release)
    else:
        clear_leftovers(job.folder, below=True)
        job.run(report, release)


def run_interruptible(job: AnyJob, interruption: Interruption, report: Report) -> None:
    """Run a job, so that a training ends on request after its current step, and all else at once."""
    interruption.deferred = job.has_processes  # they must not be killed while they start or send a batch

    def pass_on(step: int, text: str = "") -> None:
        interruption.deferred = isinstance(job, Job)
        interruption.check()
        report(step, text)

    try:
        run_job(job, pass_on, interruption.release)
    finally:
        interruption.release()  # also after an error between two steps


class Runner:
    """A place where jobs run. A handle of a running job is `done()` when the job runs no more."""

    elsewhere = False
    """Whether the steps of running jobs aren't known here, and other jobs are waited for when one has failed."""
    show: Callable[[], None] = staticmethod(lambda: None)
    """Shows the progress."""

    def __init__(self, most: int = 1) -> None:
        self.most = most
        self.steps: dict[str, int] = {}  # the last known one of each running job, by its id

    def choose(self, ready: Sequence[AnyJob], running: int) -> Sequence[AnyJob]:
        """Return those of the jobs that can be started now, while others run."""
        return ready[: max(0, self.most - running)]

    def start(self, jobs: Sequence[AnyJob]) -> Sequence[Any]:
        """Start the chosen jobs; returns a handle for each."""
        raise NotImplementedError

    def wait(self, handles: Collection[Any]) -> None:
        """Wait a moment, or until one of the jobs is done."""

    def reason(self, handle: Any) -> str:
        """Return why a job that is done has failed, as far as it is known; else an empty text."""
        return str(handle.exception() or "")

    def line(self, handles: Collection[Any]) -> str:
        """Return what is known of the running jobs, as a line."""
        return ""

    def stop(self, handles: Collection[Any]) -> None:
        """End the running jobs, whose saved states stay, and free what jobs needed."""


_messages: Any = None  # in a worker: the queue for its progress messages


def begin_worker(messages: Any) -> None:
    """Prepare a worker process."""
    global _messages
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends the workers
    end_with_parent()
    messages.cancel_join_thread()  # the last ones don't matter
    _messages = messages


def work(job: AnyJob) -> None:
    """Run a job in a worker process, and send its steps."""
    interruption, sent = Interruption(), 0.0
    signal.signal(signal.SIGTERM, interruption.request)

    def report(step: int, text: str) -> None:
        nonlocal sent
        if time.monotonic() - sent > POLL_SECONDS:
            sent = time.monotonic()
            _messages.put((job.id, step, text))

    after = signal.SIG_DFL
    try:
        call_in_worker(run_interruptible, job, interruption, report)
    except Stopped:
        after = signal.SIG_IGN  # the process ends by itself, so that what its loaders held is freed
    finally:
        signal.signal(signal.SIGTERM, after)


class Workers(Runner):
    """Worker processes of this command. Each runs one job after another, and needn't load torch again."""

    def __init__(self, most: int, threads: int) -> None:
        super().__init__(most)
        start_server(threads)
        context = workers_context()
        self.messages, self.others = context.Queue(), multiprocessing.active_children()
        self.pool = ProcessPoolExecutor(most, context, begin_worker, (self.messages,))
        self.last: list[tuple[AnyJob, Future[None]]] = []  # the jobs that were started last, one for each worker
        self.texts: dict[str, str] = {}  # what the running jobs said last

    def choose(self, ready: Sequence[AnyJob], running: int) -> list[AnyJob]:
        """Choose a job: if possible one whose group an idle worker has loaded, else one of no busy worker's group."""
        if not ready or running >= self.most:
            return []
        loaded, held = ({job.group for job, its in self.last if its.done() == idle} - {""} for idle in (True, False))
        return [min(ready, key=lambda job: (job.group not in loaded, job.group in held))]

    def start(self, jobs: Sequence[AnyJob]) -> list[Future[None]]:
        (job,) = jobs
        handle = self.pool.submit(work, job)
        self.last = [*self.last, (job, handle)][-self.most :]
        return [handle]

    def wait(self, handles: Collection[Future[None]]) -> None:
        wait(handles, POLL_SECONDS, FIRST_COMPLETED)
        with contextlib.suppress(queue.Empty):
            while True:
                name, step, self.texts[name] = self.messages.get_nowait()
                self.steps[name] = max(self.steps.get(name, 0), step)

    def reason(self, handle: Future[None]) -> str:
        error = handle.exception()
        if isinstance(error, BrokenProcessPool):
            return "its process was killed, or that of another run, as when memory is short; try fewer --workers"
        if error and not isinstance(error, UserError):
            raise error
        return super().reason(handle)

    def line(self, handles: Collection[Future[None]]) -> str:
        """Return the losses of the first few running jobs."""
        known = [(job.name, self.texts.get(job.id)) for job, its in self.last if not its.done()]
        return "; ".join([f"{name}: {text}" for name, text in known if text][:MOST_NAMED])

    def stop(self, handles: Collection[Future[None]]) -> None:
        """End all workers. Idle ones may end by themselves first, so that their libraries free what they hold."""
        self.pool.shutdown(wait=False)
        busy, end = sum(not handle.done() for handle in handles), time.monotonic() + LEAVE_SECONDS
        while len(self.processes()) > busy and time.monotonic() < end:
            time.sleep(0.01)
        end_processes(self.processes())

    def processes(self) -> list[BaseProcess]:
        """Return the workers' processes, also one that is just starting."""
        return [child for child in multiprocessing.active_children() if child not in self.others]


class FirstProcess(Runner):
    """This process, which the other processes of torchrun train together with."""

    def start(self, jobs: Sequence[AnyJob]) -> list[Future[None]]:
        """Run a job to its end."""
        (job,) = jobs
        done = Future[None]()

        def report(step: int, text: str) -> None:
            self.steps[job.id] = step
            self.show()

        try:
            run_job(job, report, lambda: None)
            done.set_result(None)
        except UserError as error:
            done.set_exception(error)
        return [done]


@dataclass
class StartedTask:
    """A task of a cluster."""

    job: AnyJob
    submitted: "SubmittedJob[None]"
    grace: float
    since: float = 0.0  # when it was first seen that the task had ended

    def done(self) -> bool:
        if not self.submitted.done():
            return False
        self.since = self.since or time.monotonic()
        return self.job.ended or time.monotonic() - self.since > self.grace


class ClusterTasks(Runner):
    """Tasks of a cluster, or subprocesses that stand for them, with files in a new folder below `folder`."""

    elsewhere = True

    def __init__(self, cluster: Cluster, folder: Path, workers: int, function: Callable[..., None] | None = None):
        super().__init__(workers if cluster.engine == "local" else cluster.slurm.at_once)
        check_folder(cluster, folder)
        logging.getLogger("submitit").setLevel(logging.ERROR)
        self.cluster, self.folder = cluster, folder / secrets.token_hex(4)
        run = function or partial(run_task, processes=cluster.slurm.processes)
        self.task, self.lock = Task(run, self.folder.absolute() / "command.lock"), None
        if cluster.engine == "local":
            self.folder.mkdir(parents=True)
            self.lock = FileLock(self.task.lock)
            self.lock.acquire()

    def start(self, jobs: Sequence[AnyJob]) -> list[StartedTask]:
        needed = resources(jobs, self.cluster.slurm.processes)
        submitted = submit(self.task, jobs, self.cluster, self.folder, *needed)
        grace = GRACE[self.cluster.engine]
        return [StartedTask(job, task, grace) for job, task in zip(jobs, submitted, strict=True)]

    def wait(self, handles: Collection[StartedTask]) -> None:
        time.sleep(CLUSTER_POLL_SECONDS if self.cluster.engine == "slurm" else POLL_SECONDS)

    def reason(self, handle: StartedTask) -> str:
        if handle.job.ended:
            return ""
        reason = reason_of_end(handle.submitted)
        print(f"no result of {handle.job.name}: {reason}", flush=True)
        return reason

    def line(self, handles: Collection[StartedTask]) -> str:
        counts = Counter(task.submitted.state.lower() for task in handles)
        return ", ".join(f"{count} {state}" for state, count in counts.items())

    def stop(self, handles: Collection[StartedTask]) -> None:
        end_tasks([task.submitted for task in handles], self.cluster)


def run_task(job: AnyJob, interruption: Interruption, processes: int = 1) -> None:
    """Run a job in a task, unless it has ended; a training in so many `processes` together."""
    if job.ended:
        return
    lines = PlainLines()

    def report(step: int, text: str) -> None:
        if lines.due():
            print(", ".join(filter(None, (f"{job.name}: step {step} of {job.steps}", text))), flush=True)

    run = partial(run_interruptible, job, interruption, report)
    if isinstance(job, Job):
        import_modules(MODULES)
    if isinstance(job, Job) and processes > 1:
        run_in_processes(run, processes, job.threads)
    else:
        run()


def resources(jobs: Collection[AnyJob], processes: int) -> tuple[int, int]:
    """Return the cores and GPUs that a task of `processes` processes needs."""
    cores = max(1, *(job.threads for job in jobs))
    return processes * cores, processes * any(job.device.startswith("cuda") for job in jobs)

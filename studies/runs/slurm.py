"""Tasks of a cluster: their resources, their submission by submitit as a Slurm job array or as subprocesses, and their
body, which ends on request and is queued again if it can continue. submitit pickles a task, and what it returns, into a
new folder, so that nothing that others left is unpickled."""

import contextlib
import getpass
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.processes import call_in_worker, end_after
from menagerie.envs.core.validation import SOME_PROCESSES, Range, validate

if TYPE_CHECKING:
    from submitit import Job as SubmittedJob
    from submitit.core.core import InfoWatcher

SPECIAL = {"local": "%", "slurm": "%\\\n"}  # characters of paths that submitit or Slurm would interpret
HIDDEN = ("SLURM_", "SLURMD_", "SRUN_", "SQUEUE_")  # variables of an allocation, and defaults of a user's queries
KEPT = {"SLURM_CONF", "SLURM_JWT"}  # needed to reach Slurm
# Options that submitit writes into a script, to which sbatch prefers variables.
IN_SCRIPT = ("ARRAY_INX", "ERROR", "NO_REQUEUE", "OPEN_MODE", "OUTPUT", "SIGNAL")
NAMES = {"time": "TIMELIMIT", "mem": "MEM_PER_NODE"}  # options with another name as variables
SHOWN = ("--noheader", "--array", "--states=all", "--format=%i|%T")
KNOWN = {"PENDING", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "REVOKED", "TIMEOUT", "GONE"}
LONGEST_POLL = 20  # seconds between two calls of squeue
MOST_TIMEOUTS = 1000  # requeues after a time limit, which is no failure; submitit needs a number
YEAR_MINUTES = 60 * 24 * 365
SIGNALS = (signal.SIGTERM, signal.SIGUSR2)  # at preemption, and before the time limit, as submitit requests
QUERIES = 5  # queries of a job's state before it counts as ended
# Lines of a log that don't give the reason of a task's end.
NOTES = re.compile(r"submitit |srun: (?!error|fatal)|srun: error: .*: tasks? [\d,-]+: Exited with exit code ")
WAYS_OUT = {"OUT_OF_MEMORY": "; raise --slurm.gigabytes", "TIMEOUT": "; raise --slurm.minutes"}


@dataclass(frozen=True)
class Slurm:
    """Resources of each task."""

    partition: str = ""
    """Partition; empty: the cluster's default."""
    minutes: Annotated[int, Range(5, 1_000_000)] = 240  # Slurm warns a task 90 seconds before its end
    """Time limit; a task that reaches it saves its state and queues again."""
    cpus: Annotated[int, SOME_PROCESSES] = 0
    """Cores; 0: as many as the task has threads."""
    gigabytes: Annotated[float, Range(0.0, 10_000_000.0)] = 0.0
    """Memory; 0: the partition's default."""
    gpus: Annotated[int, SOME_PROCESSES] = 0
    """GPUs; with --device cuda at least one for each process."""
    processes: Annotated[int, Range(1, 1024)] = 1
    """Processes that train a run together, as under torchrun; on cuda each has a GPU."""
    at_once: Annotated[int, Range(1, 100_000)] = 100
    """Largest number of tasks that are queued or run at once, at most as many as a job array may have."""
    sbatch: tuple[str, ...] = ()
    """Further sbatch options, such as account=mine qos=low clusters=other."""


@dataclass(frozen=True)
class Cluster:
    """Where tasks run."""

    engine: Annotated[Literal["none", "local", "slurm"], tyro.conf.arg(name="cluster")] = "none"
    """none: in this command's workers; slurm: in a job array; local: in subprocesses, by the same code as slurm."""
    slurm: Slurm = field(default_factory=Slurm)


def sbatch_options(slurm: Slurm, cores: int, gpus: int) -> dict[str, str | int]:
    """Return options of sbatch by name; True is a flag without a value."""
    given = {
        "partition": slurm.partition,
        "time": slurm.minutes,
        "cpus-per-task": slurm.cpus or cores,
        "mem": f"{round(slurm.gigabytes * 1024)}M" if slurm.gigabytes else "",
        "gpus-per-node": max(slurm.gpus, gpus) or "",
        "requeue": True,
        "clusters": os.environ.get("SBATCH_CLUSTERS") or os.environ.get("SLURM_CLUSTERS"),
    }
    further = dict(option.lstrip("-").partition("=")[::2] for option in slurm.sbatch)
    if "cluster" in further:
        further["clusters"] = further.pop("cluster")
    return {name: value for name, value in given.items() if value} | {name: v or True for name, v in further.items()}


def cluster_option(options: Mapping[str, str | int]) -> list[str]:
    """Return the option for the one cluster that these options of sbatch name; empty for this machine's own."""
    name = str(options.get("clusters", ""))
    if "," in name or name == "all":
        raise UserError(f"clusters={name}: name one cluster, whose states can be queried: --slurm.sbatch clusters=X")
    return [f"--clusters={name}"] if name else []


def check_cluster(cluster: Cluster, folder: Path, cores: int = 1, gpus: int = 0, trains: bool = False) -> None:
    """Raise if tasks that write to `folder`, with `cores` and `gpus` for each process, can't be submitted."""
    engine, processes = cluster.engine, cluster.slurm.processes
    if processes > 1 and not trains:
        why = f"--slurm.processes {processes} is for trainings; tasks without training have one process"
        raise UserError(f"{why}; leave it out")
    if processes > 1 and engine == "none":
        raise UserError(f"--slurm.processes {processes} needs --cluster slurm or local; here use torchrun")
    if engine == "none":
        return
    check_folder(cluster, folder)
    try:
        import submitit  # noqa: F401
    except ImportError:
        raise UserError(f"--cluster {engine} needs submitit: pip install submitit") from None
    if engine == "slurm":
        check_slurm(cluster, cores * processes, gpus * processes)


def check_slurm(cluster: Cluster, cores: int, gpus: int) -> None:
    """Raise if Slurm would refuse tasks with these resources, according to `sbatch --test-only`."""
    if missing := [name for name in ("sbatch", "srun", "squeue", "scontrol") if not shutil.which(name)]:
        why = f"--cluster slurm: no {missing[0]} here"
        raise UserError(f"{why}; start this command where jobs can be submitted, or use local")
    validate(cluster)
    given = sbatch_options(cluster.slurm, cores, gpus)
    cluster_option(given)
    flags = [f"--{name}" if value is True else f"--{name}={value}" for name, value in given.items()]
    with task_environment(given):
        result = subprocess.run(["sbatch", "--test-only", *flags, "--wrap=true"], capture_output=True, text=True)
    if result.returncode:
        raise slurm_refusal(result.stderr)


def check_folder(cluster: Cluster, folder: Path) -> None:
    """Raise for a folder whose path Slurm or submitit would change, so that files would be written elsewhere."""
    path = str(folder.absolute())
    if special := [character for character in SPECIAL.get(cluster.engine, "") if character in path]:
        why = f"--cluster {cluster.engine} can't write to {path!r}: submitit or Slurm would interpret {special[0]!r} in"
        raise UserError(f"{why} a path; choose another folder")


def slurm_refusal(errors: str) -> UserError:
    """Return an error with the reason in the last line of sbatch's output."""
    last = (errors.strip().splitlines() or ["no reason given"])[-1]
    reason = last.rpartition("error: ")[2].rpartition("failure: ")[2]
    way = "lower --slurm.at-once" if "array" in reason else "see `sinfo`, and the --slurm options under --help"
    return UserError(f"Slurm refuses the tasks: {reason}; {way}")


@contextlib.contextmanager
def task_environment(options: Iterable[str] = ()) -> Iterator[None]:
    """Hide variables of an allocation around this command, and a user's defaults for the given `options` of sbatch."""
    given = {f"SBATCH_{name}" for name in IN_SCRIPT}
    given |= {f"SBATCH_{NAMES.get(option, option.upper().replace('-', '_'))}" for option in options}
    names = [name for name in os.environ if name in given or (name.startswith(HIDDEN) and name not in KEPT)]
    hidden = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ.update(hidden)


def submit(
    task: "Task", arguments: Sequence[Any], cluster: Cluster, folder: Path, cores: int = 1, gpus: int = 0
) -> "list[SubmittedJob[None]]":
    """Submit a task for each of `arguments`, on Slurm as one job array; `folder` gets scripts, pickles and logs."""
    import submitit

    slurm, engine = cluster.slurm, cluster.engine
    options = sbatch_options(slurm, cores, gpus)
    submitit.SlurmJob.watcher = queue_watcher(*cluster_option(options) if engine == "slurm" else ())
    executor = submitit.AutoExecutor(folder, cluster=engine, **{f"{engine}_max_num_timeout": MOST_TIMEOUTS})
    executor.update_parameters(
        name="menagerie",
        timeout_min=slurm.minutes if engine == "slurm" else YEAR_MINUTES,
        local_gpus_per_node=max(slurm.gpus, gpus),  # 0 hides all GPUs
        stderr_to_stdout=True,
        slurm_additional_parameters=options,
    )
    # Ctrl-C, which a terminal sends to all processes, must end neither sbatch nor a local task.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        with task_environment(options), contextlib.redirect_stderr(io.StringIO()):  # the error repeats this text
            return executor.map_array(task, arguments)
    except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
        raise slurm_refusal(str(error)) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_tasks(jobs: "Sequence[SubmittedJob[None]]", cluster: Cluster) -> None:
    """End subprocesses, which save their states; of Slurm's tasks, which continue, print how they are cancelled."""
    running = [job for job in jobs if not job.done()]
    if cluster.engine == "slurm" and running:
        arrays = sorted({job.job_id.partition("_")[0] for job in running})
        command = " ".join(["scancel", *cluster_option(sbatch_options(cluster.slurm, 1, 0)), *arrays])
        print(f"{len(running)} tasks continue in Slurm; `{command}` cancels them", flush=True)
        return
    for job in running:  # submitit's process passes the signal on to its task
        with contextlib.suppress(OSError):
            os.kill(int(job.job_id), signal.SIGTERM)
    for job in running:
        job.wait()


@lru_cache
def queue_watcher(*place: str) -> "InfoWatcher":
    """Return what asks a cluster (`place`: an option of squeue; without it this machine's own) for states of jobs:
    squeue in place of submitit's sacct, which needs an accounting database and doesn't ask other clusters."""
    from submitit.slurm.slurm import SlurmInfoWatcher

    class QueueWatcher(SlurmInfoWatcher):
        def _make_command(self) -> list[str] | None:
            waited = self._registered - self._finished
            return ["squeue", *place, *SHOWN, f"--user={getpass.getuser()}"] if waited else None

        def update(self) -> None:
            with task_environment():
                super().update()

        def read_info(self, string: bytes | str) -> dict[str, dict[str, str]]:
            """Read squeue's lines. A job without one ended minutes ago; in other states Slurm may queue it again."""
            text = string if isinstance(string, str) else string.decode("utf-8", "surrogateescape")
            states = dict(line.split("|", 1) for line in text.splitlines() if re.match(r"\d+(_\d+)?\|", line))
            found = {job: states.get(job, "GONE") for job in self._registered - self._finished}
            return {job: {"State": state if state in KNOWN else "RUNNING"} for job, state in found.items()}

    return QueueWatcher(delay_s=LONGEST_POLL)


def reason_of_end(job: "SubmittedJob[None]") -> str:
    """Return why a task ended without a result: the last line of its log that gives a reason, and its state."""
    state, log = job.state, Path(job.paths.stdout)
    words = f" ({state.lower()}{WAYS_OUT.get(state, '')}); its log: {log}"
    try:
        lines = [line.strip() for line in log.read_text("utf-8", errors="replace").splitlines()]
    except OSError:
        return f"no log was written{words}; is its folder on a file system that all machines share?"
    reasons = [line for line in lines if line and not NOTES.match(line)]
    last = re.sub(r"^(menagerie\.[\w.]*\.)?UserError: ", "", reasons[-1]) if reasons else "it ended without a result"
    return last + words


@dataclass
class Interruption:
    """A request to end a job: at once or, while `deferred`, at its next `check`."""

    deferred: bool = False
    requested: bool = False

    def request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        if not self.deferred:
            raise Stopped

    def check(self) -> None:
        """Raise `Stopped` if the end was requested."""
        if self.requested:
            raise Stopped

    def release(self) -> None:
        """Let later requests end the job at once; raises `Stopped` if there was a request before."""
        self.deferred = False
        self.check()


@dataclass(frozen=True)
class Task:
    """The function that submitit runs: it calls `function(argument, interruption)`, which must continue where it
    stopped when it is called again. Local tasks end with the submitting command; Slurm's don't need it."""

    function: Callable[[Any, Interruption], None]
    lock: Path  # the file that the submitting command locks as long as it runs
    command: tuple[str, ...] = field(default_factory=lambda: tuple(sys.argv))  # for the provenance of results

    def __call__(self, argument: object) -> None:
        """Run the function. A stopped task is queued again if it may continue."""
        requeue = signal.getsignal(signal.SIGUSR2)  # submitit's handler, which must not interrupt a step
        interruption, local = Interruption(), os.environ.get("SUBMITIT_EXECUTOR") == "local"
        sys.argv[:] = self.command
        try:
            for number in SIGNALS:
                signal.signal(number, interruption.request)
            if local:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is blocked, but multiprocessing would unblock it
                end_after(self.wait_for_command, gently=True)
            call_in_worker(self.function, argument, interruption)
        except Stopped:
            for number in SIGNALS:  # Slurm sends more while it ends this process
                signal.signal(number, signal.SIG_IGN)
            if not local and may_go_on():
                requeue(signal.SIGUSR2, None)  # calls `checkpoint`, queues again and exits
            sys.exit("stopped: what was saved is kept")

    def wait_for_command(self) -> None:
        """Wait until the submitting command has ended."""
        with FileLock(self.lock):
            pass

    def checkpoint(self, argument: object) -> object:
        """Return what submitit queues again: the same task, because its state is in files."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, argument)


def may_go_on() -> bool:
    """Whether to queue a task of Slurm again: not if Slurm ends the job, which was cancelled or is requeued."""
    command = ["squeue", "--noheader", "--format=%T", f"--jobs={os.environ.get('SLURM_JOB_ID')}"]
    for _ in range(QUERIES):  # a busy Slurm may not answer at once
        if state := subprocess.run(command, capture_output=True, text=True).stdout.strip():
            return state == "RUNNING"
        time.sleep(1)
    return False

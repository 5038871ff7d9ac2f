"""Where tasks run, with which resources, and their submission by submitit: to a Slurm job array, or subprocesses here.

submitit pickles a task into the run's folder, from which the task reads it; nothing from elsewhere is unpickled.
"""

import contextlib
import io
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import SOME_PROCESSES, Range, validate

# Signs that submitit and Slurm replace in file names (%j, %a; in Slurm a backslash stops that), or can't read in a
# script.
SPECIAL = {"local": "%", "slurm": "%\\\n"}
STOPS = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and what ends a command otherwise


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
    """Processes that take the steps of a run together, as under torchrun; on cuda each has a GPU."""
    at_once: Annotated[int, Range(1, 100_000)] = 100
    """The most tasks of the array that run at once."""
    sbatch: tuple[str, ...] = ()
    """Further sbatch options, such as account=mine qos=low."""


@dataclass(frozen=True)
class Cluster:
    """Where tasks run."""

    engine: Annotated[Literal["none", "local", "slurm"], tyro.conf.arg(name="cluster")] = "none"
    """none: in this command's workers; slurm: in a job array; local: in subprocesses, by the same code as slurm."""
    slurm: Slurm = field(default_factory=Slurm)


def sbatch_options(slurm: Slurm, cores: int, gpus: int) -> dict[str, str | int]:
    """Return options of sbatch by name; True stands for a flag without a value."""
    given = {
        "partition": slurm.partition,
        "time": slurm.minutes,
        "cpus-per-task": slurm.cpus or cores,
        "mem": f"{round(slurm.gigabytes * 1024)}M" if slurm.gigabytes else "",
        "gpus-per-node": max(slurm.gpus, gpus) or "",
        "requeue": True,
    }
    further = dict(option.lstrip("-").partition("=")[::2] for option in slurm.sbatch)
    return {name: value for name, value in given.items() if value} | {name: v or True for name, v in further.items()}


def check_cluster(cluster: Cluster, folder: Path, cores: int = 1, gpus: int = 0, trains: bool = False) -> None:
    """Raise if tasks can't be submitted, before anything is created; `sbatch --test-only` checks the options.

    `folder` is the folder where tasks will write, cores and GPUs are those of one process. Only tasks that train may
    have several processes.
    """
    processes = cluster.slurm.processes
    if processes > 1 and not trains:
        raise UserError(f"--slurm.processes {processes} is for trainings; these tasks have one process, leave it out")
    if processes > 1 and cluster.engine == "none":
        raise UserError(f"--slurm.processes {processes} needs --cluster slurm or local; here use torchrun")
    if cluster.engine == "none":
        return
    check_folder(cluster, folder)
    try:
        import submitit  # noqa: F401
    except ImportError:
        raise UserError(f"--cluster {cluster.engine} needs submitit: pip install submitit") from None
    if cluster.engine == "local":
        return
    if missing := [name for name in ("sbatch", "srun", "squeue", "scontrol") if not shutil.which(name)]:
        raise UserError(f"--cluster slurm: no {missing[0]} here; start it where jobs are submitted, or use local")
    validate(cluster)
    given = sbatch_options(cluster.slurm, cores * processes, gpus * processes).items()
    flags = [f"--{name}" if value is True else f"--{name}={value}" for name, value in given]
    result = subprocess.run(["sbatch", "--test-only", *flags, "--wrap=true"], capture_output=True, text=True)
    if result.returncode:
        raise refused(result.stderr)


def check_folder(cluster: Cluster, folder: Path) -> None:
    """Raise for a folder whose path Slurm or submitit would change, so that files would be written elsewhere."""
    path = str(folder.absolute())
    if special := [character for character in SPECIAL.get(cluster.engine, "") if character in path]:
        raise UserError(
            f"--cluster {cluster.engine} can't write to {path!r}: submitit and Slurm read {special[0]!r} in a path as "
            "something else; choose another folder"
        )


def refused(errors: str) -> UserError:
    """Make an error of the reason in the last line of sbatch's output."""
    last = (errors.strip().splitlines() or ["no reason given"])[-1]
    reason = last.rpartition("error: ")[2].rpartition("failure: ")[2]
    return UserError(f"Slurm refuses the tasks: {reason}; see `sinfo`, and the --slurm options under --help")


ENDED = frozenset(  # final states of Slurm; GONE and ENDED are ours
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"}
    | {"REVOKED", "TIMEOUT", "GONE", "ENDED"}
)
# Requeues after a time limit; it isn't a failure, because tasks continue from saved states. submitit needs a number.
MOST_TIMEOUTS = 1000
YEAR_MINUTES = 60 * 24 * 365


class Handle(NamedTuple):
    """A task that was submitted."""

    engine: str
    job: str
    """Slurm's job id, or a process id."""
    log: str
    """Absolute path of the file with the task's output."""

    @property
    def folder(self) -> str:
        """The folder where submitit keeps all files of the task."""
        return os.path.dirname(self.log)


def submit(
    cluster: Cluster,
    folder: Path,
    function: Callable[[Any], Any],
    arguments: Sequence[Any],
    cores: int = 1,
    gpus: int = 0,
    name: str = "menagerie",
) -> list[Handle]:
    """Submit `function(argument)` for each of `arguments`, on Slurm as one job array; logs go to `folder`.

    Call it within `holding_stops`, so that no signal cuts the submission off midway. A function with a method
    `checkpoint` is queued again if it is interrupted: see `menagerie.studies.cluster.worker.Task`.
    """
    import submitit

    check_folder(cluster, folder)
    logging.getLogger("submitit").setLevel(logging.ERROR)
    timeouts = {f"{cluster.engine}_max_num_timeout": MOST_TIMEOUTS}
    executor = submitit.AutoExecutor(folder, cluster=cluster.engine, **timeouts)
    executor.update_parameters(
        name=name,
        timeout_min=cluster.slurm.minutes if cluster.engine == "slurm" else YEAR_MINUTES,
        local_gpus_per_node=max(cluster.slurm.gpus, gpus),  # 0 hides all GPUs
        stderr_to_stdout=True,
        slurm_array_parallelism=cluster.slurm.at_once,
        slurm_additional_parameters=sbatch_options(cluster.slurm, cores, gpus),
    )
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # the error repeats the printed text
            jobs = executor.map_array(function, arguments)
    except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
        raise refused(str(error)) from error
    return [Handle(cluster.engine, job.job_id, str(job.paths.stdout)) for job in jobs]


@contextlib.contextmanager
def holding_stops(engine: str) -> Iterator[None]:
    """Hold SIGINT and SIGTERM back until the context ends without an error, so that what is submitted is also recorded.

    Processes started meanwhile get no SIGINT: Ctrl-C reaches the command and all that it started. sbatch gets no
    SIGTERM either; local tasks do, since it ends them.
    """
    came: dict[int, None] = {}
    before = {number: signal.signal(number, lambda number, frame: came.update({number: None})) for number in STOPS}
    children = STOPS if engine == "slurm" else (signal.SIGINT,)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, children)  # which processes inherit, as they don't our handler
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in came:
        signal.raise_signal(number)


class Status(NamedTuple):
    """The state of a task."""

    state: str
    """State as Slurm gives it; RUNNING or ENDED for a subprocess; UNKNOWN if Slurm doesn't answer; GONE if it isn't
    listed."""
    reason: str = ""


def states(handles: Iterable[Handle]) -> dict[str, Status]:
    handles = list(handles)
    local = {h.job: Status("RUNNING" if runs_here(h) else "ENDED") for h in handles if h.engine == "local"}
    return local | queue([handle.job for handle in handles if handle.engine == "slurm"])


def queue(jobs: list[str]) -> dict[str, Status]:
    """Ask squeue for the status of Slurm's jobs, because sacct would need an accounting database."""
    if not jobs:
        return {}
    arrays = ",".join(sorted({job.partition("_")[0] for job in jobs}))
    command = ["squeue", "--noheader", "--array", "--states=all", "--format=%i|%T|%r", f"--jobs={arrays}"]
    try:
        result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="surrogateescape", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return dict.fromkeys(jobs, Status("UNKNOWN", str(error)))
    if result.returncode and "Invalid job id" not in result.stderr:
        return dict.fromkeys(jobs, Status("UNKNOWN", result.stderr.strip()))
    rows = (line.split("|", 2) for line in result.stdout.split("\n") if line)
    listed = {job: Status(state, "" if reason == "None" else reason) for job, state, reason in rows}
    return {job: listed.get(job, Status("GONE")) for job in jobs}


def runs_here(handle: Handle) -> bool:
    """Whether a subprocess still runs. It must be submitit's for this folder, because its id may have been reused."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{handle.job}/cmdline").read_bytes().split(b"\0")
        return words[-3:-1] == [b"submitit.local._local", handle.folder.encode("utf-8", "surrogateescape")]
    return False


def end_here(handles: Iterable[Handle]) -> None:
    """End the tasks in subprocesses of this machine; their saved states stay."""
    for handle in handles:
        if handle.engine == "local" and runs_here(handle):
            with contextlib.suppress(OSError):
                tasks = Path(f"/proc/{handle.job}/task/{handle.job}/children").read_text("utf-8").split()
                os.kill(int(handle.job), signal.SIGKILL)  # first the process that would restart the task
                for task in tasks:
                    os.kill(int(task), signal.SIGTERM)

"""Where tasks run and with which resources, and their submission by submitit: as a Slurm job array, or as subprocesses.

submitit pickles a task into the study's folder, from which the task reads it; nothing else is unpickled.
"""

import contextlib
import io
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import SOME_PROCESSES, Range, validate
from menagerie.studies.cluster.slurm_commands import Status, cancel, job_on, largest_array, queue, task_environment

# Characters of paths that submitit or Slurm would interpret (%j, %a, backslashes), or can't have in a script.
SPECIAL = {"local": "%", "slurm": "%\\\n"}
STOPS = (signal.SIGINT, signal.SIGTERM)  # signals that end a command


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
    """Largest number of tasks that run at once, of those submitted together."""
    sbatch: tuple[str, ...] = ()
    """Further sbatch options, such as account=mine qos=low clusters=other."""


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
        "clusters": os.environ.get("SBATCH_CLUSTERS") or os.environ.get("SLURM_CLUSTERS"),
    }
    further = dict(option.lstrip("-").partition("=")[::2] for option in slurm.sbatch)
    if "cluster" in further:
        further["clusters"] = further.pop("cluster")
    return {name: value for name, value in given.items() if value} | {name: v or True for name, v in further.items()}


def cluster_name(options: Mapping[str, str | int]) -> str:
    """Return the cluster that these options of sbatch name; empty for this machine's own. Raises for several."""
    name = str(options.get("clusters", ""))
    if "," in name or name == "all":
        raise UserError(f"clusters={name}: name one cluster, whose states can be queried: --slurm.sbatch clusters=X")
    return name


def check_cluster(cluster: Cluster, folder: Path, cores: int = 1, gpus: int = 0, trains: bool = False) -> None:
    """Raise if tasks can't be submitted, before anything is created; `sbatch --test-only` checks the options.

    `folder` is the folder where tasks will write, cores and GPUs are those of one process. Only tasks that train may
    have several processes.
    """
    processes = cluster.slurm.processes
    if processes > 1 and not trains:
        raise UserError(
            f"--slurm.processes {processes} is for trainings; tasks without training have one process; leave it out"
        )
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
        raise UserError(
            f"--cluster slurm: no {missing[0]} here; start this command where jobs can be submitted, or use local"
        )
    validate(cluster)
    given = sbatch_options(cluster.slurm, cores * processes, gpus * processes)
    cluster_name(given)
    flags = [f"--{name}" if value is True else f"--{name}={value}" for name, value in given.items()]
    with task_environment(given):
        result = subprocess.run(["sbatch", "--test-only", *flags, "--wrap=true"], capture_output=True, text=True)
    if result.returncode:
        raise slurm_refusal(result.stderr)


def check_folder(cluster: Cluster, folder: Path) -> None:
    """Raise for a folder whose path Slurm or submitit would change, so that files would be written elsewhere."""
    path = str(folder.absolute())
    if special := [character for character in SPECIAL.get(cluster.engine, "") if character in path]:
        raise UserError(
            f"--cluster {cluster.engine} can't write to {path!r}: submitit or Slurm would interpret {special[0]!r} in "
            f"a "
            "path; choose another folder"
        )


def slurm_refusal(errors: str) -> UserError:
    """Return an error with the reason in the last line of sbatch's output."""
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
    """Slurm's job id, followed by `;` and its cluster unless that is this machine's own, or a process id."""
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
    """Submit `function(argument)` for each of `arguments`; logs go to `folder`.

    On Slurm they are one job array, or several if they are too many for one; if one is refused, the others are
    cancelled. Call this within `holding_stops`, so that no signal interrupts the submission. A function with a method
    `checkpoint` is queued again if it is interrupted (`menagerie.studies.cluster.worker.Task`).
    """
    import submitit

    check_folder(cluster, folder)
    logging.getLogger("submitit").setLevel(logging.ERROR)
    timeouts = {f"{cluster.engine}_max_num_timeout": MOST_TIMEOUTS}
    options = sbatch_options(cluster.slurm, cores, gpus)
    place = cluster_name(options) if cluster.engine == "slurm" else ""
    most = largest_array(place) if cluster.engine == "slurm" else sys.maxsize
    arrays = max(1, -(-len(arguments) // most))
    if arrays > cluster.slurm.at_once:
        raise UserError(
            f"{len(arguments)} tasks need {arrays} job arrays here (MaxArraySize), each of which runs a task at a time "
            f"or "
            f"more; raise --slurm.at-once {cluster.slurm.at_once} to {arrays} or more"
        )
    size = max(1, -(-len(arguments) // arrays))
    executor = submitit.AutoExecutor(folder, cluster=cluster.engine, **timeouts)
    executor.update_parameters(
        name=name,
        timeout_min=cluster.slurm.minutes if cluster.engine == "slurm" else YEAR_MINUTES,
        local_gpus_per_node=max(cluster.slurm.gpus, gpus),  # 0 hides all GPUs
        stderr_to_stdout=True,
        slurm_array_parallelism=cluster.slurm.at_once // arrays,
        slurm_additional_parameters=options,
    )
    handles: list[Handle] = []
    try:
        # The error repeats the printed text.
        with task_environment(options), contextlib.redirect_stderr(io.StringIO()):
            for start in range(0, len(arguments), size):
                jobs = executor.map_array(function, arguments[start : start + size])
                handles += (Handle(cluster.engine, job_on(place, job.job_id), str(job.paths.stdout)) for job in jobs)
    except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
        cancel(handle.job for handle in handles)
        raise slurm_refusal(str(error)) from error
    return handles


@contextlib.contextmanager
def holding_stops(engine: str) -> Iterator[None]:
    """Defer SIGINT and SIGTERM until the context ends, so that submitted tasks are also recorded.

    Processes that are started meanwhile don't get SIGINT, which Ctrl-C sends to all of them; sbatch doesn't get SIGTERM
    either. Local tasks do, because it ends them.
    """
    came: dict[int, None] = {}
    before = {number: signal.signal(number, lambda number, frame: came.update({number: None})) for number in STOPS}
    children = STOPS if engine == "slurm" else (signal.SIGINT,)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, children)  # inherited by child processes, unlike handlers
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in came:
        signal.raise_signal(number)


def query_states(handles: Iterable[Handle]) -> dict[str, Status]:
    handles = list(handles)
    local = {h.job: Status("RUNNING" if runs_here(h) else "ENDED") for h in handles if h.engine == "local"}
    return local | queue(handle.job for handle in handles if handle.engine == "slurm")


def runs_here(handle: Handle) -> bool:
    """Whether a subprocess still runs, and is submitit's for this folder: its id may have been reused."""
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
                os.kill(int(handle.job), signal.SIGKILL)  # the process that would restart the task
                for task in tasks:
                    os.kill(int(task), signal.SIGTERM)

"""Where tasks run and with which resources, and their submission by submitit: as a Slurm job array, or as subprocesses.

submitit pickles a task, and what it returns, into a new folder, so that nothing that others left is unpickled.
"""

import contextlib
import getpass
import io
import logging
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import SOME_PROCESSES, Range, validate
from menagerie.studies.cluster.worker import Command, Interruption, Task

if TYPE_CHECKING:
    from submitit import Job
    from submitit.core.core import InfoWatcher

# Characters of paths that submitit or Slurm would interpret (%j, %a, backslashes), or can't have in a script.
SPECIAL = {"local": "%", "slurm": "%\\\n"}
# Variables of an allocation in which this command runs, and defaults of a user's own queries.
HIDDEN = ("SLURM_", "SLURMD_", "SRUN_", "SQUEUE_")
KEPT = {"SLURM_CONF", "SLURM_JWT"}  # needed to reach Slurm
# sbatch prefers variables to the options in a script. These are options that submitit writes.
IN_SCRIPT = ("ARRAY_INX", "ERROR", "NO_REQUEUE", "OPEN_MODE", "OUTPUT", "SIGNAL")
NAMES = {"time": "TIMELIMIT", "mem": "MEM_PER_NODE"}  # options with another name as variables
SHOWN = ("--noheader", "--array", "--states=all", "--format=%i|%T")
KNOWN = {"PENDING", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "REVOKED", "TIMEOUT", "GONE"}
LONGEST_POLL = 20  # seconds between two calls of squeue
# Requeues after a time limit; it isn't a failure, because tasks continue from saved states. submitit needs a number.
MOST_TIMEOUTS = 1000
YEAR_MINUTES = 60 * 24 * 365


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
    way = "lower --slurm.at-once" if "array" in reason else "see `sinfo`, and the --slurm options under --help"
    return UserError(f"Slurm refuses the tasks: {reason}; {way}")


@contextlib.contextmanager
def task_environment(options: Iterable[str] = ()) -> Iterator[None]:
    """Hide environment variables inside this context: those of an allocation around this command, which would change
    the submitted tasks, and a user's defaults for the given `options` of sbatch."""
    given = {f"SBATCH_{name}" for name in IN_SCRIPT}
    given |= {f"SBATCH_{NAMES.get(option, option.upper().replace('-', '_'))}" for option in options}
    names = [name for name in os.environ if name in given or (name.startswith(HIDDEN) and name not in KEPT)]
    hidden = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ.update(hidden)


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Block SIGINT inside this context, also for processes that start in it: Ctrl-C, which a terminal sends to all of
    them, ends neither sbatch nor a local task."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Tasks:
    """Submits tasks that call `function(argument, interruption)`, and ends them."""

    def __init__(self, cluster: Cluster, folder: Path, function: Callable[[Any, Interruption], None]) -> None:
        """Prepare a new folder below `folder`, for scripts, pickles and logs."""
        check_folder(cluster, folder)
        logging.getLogger("submitit").setLevel(logging.ERROR)
        self.cluster, self.task = cluster, Task(Command(), function)
        self.folder = folder / secrets.token_hex(4)
        self.place = ""

    def submit(self, arguments: Sequence[Any], cores: int = 1, gpus: int = 0) -> "list[Job[None]]":
        """Submit a task for each of `arguments`; on Slurm they are one job array. Each has `cores` and `gpus`."""
        import submitit

        slurm, engine = self.cluster.slurm, self.cluster.engine
        options = sbatch_options(slurm, cores, gpus)
        self.place = cluster_name(options) if engine == "slurm" else ""
        submitit.SlurmJob.watcher = queue_watcher(self.place)
        executor = submitit.AutoExecutor(self.folder, cluster=engine, **{f"{engine}_max_num_timeout": MOST_TIMEOUTS})
        executor.update_parameters(
            name="menagerie",
            timeout_min=slurm.minutes if engine == "slurm" else YEAR_MINUTES,
            local_gpus_per_node=max(slurm.gpus, gpus),  # 0 hides all GPUs
            stderr_to_stdout=True,
            slurm_additional_parameters=options,
        )
        try:
            # The error repeats the printed text.
            with deferred_interrupts(), task_environment(options), contextlib.redirect_stderr(io.StringIO()):
                return executor.map_array(self.task, arguments)
        except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
            raise slurm_refusal(str(error)) from error

    def end(self, jobs: "Sequence[Job[None]]") -> None:
        """End tasks in subprocesses of this machine, which save their states. Slurm's tasks continue; print the command
        that cancels them."""
        running = [job for job in jobs if not job.done()]
        if self.cluster.engine == "slurm" and running:
            arrays = sorted({job.job_id.partition("_")[0] for job in running})
            command = " ".join(["scancel", *[f"--clusters={self.place}"] * bool(self.place), *arrays])
            print(f"{len(running)} tasks continue in Slurm; `{command}` cancels them", flush=True)
            return
        for job in running:  # submitit's process passes the signal on to its task
            with contextlib.suppress(OSError):
                os.kill(int(job.job_id), signal.SIGTERM)
        for job in running:
            job.wait()


@lru_cache
def queue_watcher(place: str) -> "InfoWatcher":
    """Return what asks a cluster (empty: this machine's own) for states of jobs: squeue in place of submitit's sacct,
    which needs an accounting database and doesn't ask other clusters."""
    from submitit.slurm.slurm import SlurmInfoWatcher

    class QueueWatcher(SlurmInfoWatcher):
        def _make_command(self) -> list[str] | None:
            if not self._registered - self._finished:
                return None
            user = f"--user={getpass.getuser()}"
            return ["squeue", *[f"--clusters={place}"] * bool(place), *SHOWN, user]

        def update(self) -> None:
            with task_environment():
                super().update()

        def read_info(self, string: bytes | str) -> dict[str, dict[str, str]]:
            """Read squeue's lines; a job that isn't among them has ended minutes ago. Slurm may queue a job again after
            states that aren't final."""
            text = string if isinstance(string, str) else string.decode("utf-8", "surrogateescape")
            states = dict(line.split("|", 1) for line in text.splitlines() if re.match(r"\d+(_\d+)?\|", line))
            found = {job: states.get(job, "GONE") for job in self._registered - self._finished}
            return {job: {"State": state if state in KNOWN else "RUNNING"} for job, state in found.items()}

    return QueueWatcher(delay_s=LONGEST_POLL)


# Lines of a log that don't give the reason of a task's end.
NOTES = re.compile(r"submitit |srun: (?!error|fatal)|srun: error: .*: tasks? [\d,-]+: Exited with exit code ")
WAYS_OUT = {"OUT_OF_MEMORY": "; raise --slurm.gigabytes", "TIMEOUT": "; raise --slurm.minutes"}


def reason_of_end(job: "Job[None]") -> str:
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

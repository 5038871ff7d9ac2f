"""Tasks in a Slurm job array, or the same path in subprocesses of this machine, through submitit.

submitit pickles a task into the folder that it is given, which is the run's own, and the task reads
it back from there: nothing is unpickled that came from elsewhere.
"""

import contextlib
import io
import logging
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from generators.cluster.options import Cluster, refused, sbatch_options

ENDED = frozenset(  # states that Slurm doesn't leave by itself; the last two are ours
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"}
    | {"REVOKED", "TIMEOUT", "GONE", "ENDED"}
)
# A time limit is no failure: what was saved goes on. submitit wants a number all the same.
MOST_TIMEOUTS = 1000
YEAR_MINUTES = 60 * 24 * 365


class Handle(NamedTuple):
    """A task that was submitted."""

    engine: str
    job: str
    """Slurm's id, or a process id."""
    log: str
    """File of what it prints."""


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

    A function that has `checkpoint` is queued again when it is interrupted: see `cluster_task.Task`.
    """
    import submitit

    logging.getLogger("submitit").setLevel(logging.ERROR)
    timeouts = {f"{cluster.engine}_max_num_timeout": MOST_TIMEOUTS}
    executor = submitit.AutoExecutor(folder, cluster=cluster.engine, **timeouts)
    executor.update_parameters(
        name=name,
        timeout_min=cluster.slurm.minutes if cluster.engine == "slurm" else YEAR_MINUTES,
        local_gpus_per_node=max(cluster.slurm.gpus, gpus),  # 0 hides them all
        stderr_to_stdout=True,
        slurm_array_parallelism=cluster.slurm.at_once,
        slurm_additional_parameters=sbatch_options(cluster.slurm, cores, gpus),
    )
    try:
        with deaf_to_ctrl_c(), contextlib.redirect_stderr(io.StringIO()):  # the error tells what is printed
            jobs = executor.map_array(function, arguments)
    except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
        raise refused(str(error)) from error
    return [Handle(cluster.engine, job.job_id, str(job.paths.stdout)) for job in jobs]


@contextlib.contextmanager
def deaf_to_ctrl_c() -> Iterator[None]:
    """Processes started now go on when the terminal sends SIGINT to all, and a submission isn't cut in two."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def states(handles: Iterable[Handle]) -> dict[str, tuple[str, str]]:
    """State and its reason of each job; UNKNOWN while Slurm doesn't answer."""
    found = {h.job: ("RUNNING" if runs_here(h) else "ENDED", "") for h in handles if h.engine == "local"}
    return found | queue([h.job for h in handles if h.engine == "slurm"])


def queue(jobs: list[str]) -> dict[str, tuple[str, str]]:
    """What squeue tells of jobs; GONE where it has forgotten one. sacct would need an accounting database."""
    if not jobs:
        return {}
    arrays = ",".join(sorted({job.partition("_")[0] for job in jobs}))
    command = ["squeue", "--noheader", "--array", "--states=all", "--format=%i|%T|%r", f"--jobs={arrays}"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {job: ("UNKNOWN", str(error)) for job in jobs}
    if told.returncode and "Invalid job id" not in told.stderr:
        return {job: ("UNKNOWN", told.stderr.strip()) for job in jobs}
    rows = [line.split("|") for line in told.stdout.splitlines()]
    found = {job: (state, "" if reason == "None" else reason) for job, state, reason in rows}
    return {job: found.get(job, ("GONE", "")) for job in jobs}


def runs_here(handle: Handle) -> bool:
    """Whether a subprocess still runs; another process that has its number by now doesn't count."""
    with contextlib.suppress(OSError):
        return str(Path(handle.log).parent) in Path(f"/proc/{handle.job}/cmdline").read_text()
    return False


def cancel(handles: Iterable[Handle]) -> None:
    """End tasks, wherever they run, for good; what they saved stays."""
    handles = list(handles)
    end_here(handles)
    if jobs := [handle.job for handle in handles if handle.engine == "slurm"]:
        subprocess.run(["scancel", *jobs], capture_output=True, check=False)


def end_here(handles: Iterable[Handle]) -> None:
    """End the tasks that run in subprocesses of this machine; what they saved stays."""
    for handle in handles:
        if handle.engine == "local" and runs_here(handle):
            with contextlib.suppress(OSError):
                tasks = Path(f"/proc/{handle.job}/task/{handle.job}/children").read_text().split()
                os.kill(int(handle.job), signal.SIGKILL)  # first what would start the task again
                for task in tasks:
                    os.kill(int(task), signal.SIGTERM)

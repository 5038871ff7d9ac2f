"""Submits tasks through submitit: to a Slurm job array, or to subprocesses of this machine.

submitit pickles a task into the run's own folder, from which the task reads it back: nothing from
elsewhere is unpickled.
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

ENDED = frozenset(  # final states of Slurm; GONE and ENDED are ours
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"}
    | {"REVOKED", "TIMEOUT", "GONE", "ENDED"}
)
# Requeues after a time limit, which is no failure as tasks continue from what they saved; submitit needs a number.
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

    A function with a method `checkpoint` is queued again when it is interrupted: see `generators.cluster.worker.Task`.
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
        with ignoring_ctrl_c(), contextlib.redirect_stderr(io.StringIO()):  # the error has what is printed
            jobs = executor.map_array(function, arguments)
    except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
        raise refused(str(error)) from error
    return [Handle(cluster.engine, job.job_id, str(job.paths.stdout)) for job in jobs]


@contextlib.contextmanager
def ignoring_ctrl_c() -> Iterator[None]:
    """Ignore SIGINT: processes started meanwhile survive Ctrl-C, and a submission isn't interrupted midway."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def states(handles: Iterable[Handle]) -> dict[str, tuple[str, str]]:
    """State of each job and its reason; UNKNOWN while Slurm doesn't answer."""
    local = {h.job: ("RUNNING" if runs_here(h) else "ENDED", "") for h in handles if h.engine == "local"}
    return local | queue([h.job for h in handles if h.engine == "slurm"])


def queue(jobs: list[str]) -> dict[str, tuple[str, str]]:
    """State and reason of jobs by squeue; GONE if it no longer lists one. sacct would need an accounting database."""
    if not jobs:
        return {}
    arrays = ",".join(sorted({job.partition("_")[0] for job in jobs}))
    command = ["squeue", "--noheader", "--array", "--states=all", "--format=%i|%T|%r", f"--jobs={arrays}"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {job: ("UNKNOWN", str(error)) for job in jobs}
    if result.returncode and "Invalid job id" not in result.stderr:
        return {job: ("UNKNOWN", result.stderr.strip()) for job in jobs}
    rows = [line.split("|") for line in result.stdout.splitlines()]
    listed = {job: (state, "" if reason == "None" else reason) for job, state, reason in rows}
    return {job: listed.get(job, ("GONE", "")) for job in jobs}


def runs_here(handle: Handle) -> bool:
    """Whether a subprocess still runs; another process with the same id by now doesn't count."""
    with contextlib.suppress(OSError):
        return str(Path(handle.log).parent) in Path(f"/proc/{handle.job}/cmdline").read_text()
    return False


def cancel(handles: Iterable[Handle]) -> None:
    """End tasks for good, on Slurm and on this machine; what they saved is kept."""
    handles = list(handles)
    end_here(handles)
    if jobs := [handle.job for handle in handles if handle.engine == "slurm"]:
        subprocess.run(["scancel", *jobs], capture_output=True, check=False)


def end_here(handles: Iterable[Handle]) -> None:
    """End the tasks that run in subprocesses of this machine; what they saved is kept."""
    for handle in handles:
        if handle.engine == "local" and runs_here(handle):
            with contextlib.suppress(OSError):
                tasks = Path(f"/proc/{handle.job}/task/{handle.job}/children").read_text().split()
                os.kill(int(handle.job), signal.SIGKILL)  # first the process that would restart the task
                for task in tasks:
                    os.kill(int(task), signal.SIGTERM)

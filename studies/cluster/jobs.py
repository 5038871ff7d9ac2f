"""Submits tasks through submitit: to a Slurm job array, or to subprocesses of this machine.

submitit pickles a task into the run's folder, from which the task reads it; nothing from elsewhere is unpickled.
"""

import contextlib
import io
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.studies.cluster.options import Cluster, check_folder, refused, sbatch_options

ENDED = frozenset(  # final states of Slurm; GONE and ENDED are ours
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"}
    | {"REVOKED", "TIMEOUT", "GONE", "ENDED"}
)
# Requeues after a time limit; it isn't a failure, because tasks continue from saved states. submitit needs a number.
MOST_TIMEOUTS = 1000
PAUSES = (2.0, 5.0, 10.0)  # seconds before Slurm is asked again, if it doesn't answer when tasks are to be ended
NO_LONGER = ("Invalid job id", "already completing or completed")  # messages of scancel for jobs that have ended
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

    A function with a method `checkpoint` is queued again if it is interrupted: see
    `menagerie.studies.cluster.worker.Task`.
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
        with ignoring_ctrl_c(), contextlib.redirect_stderr(io.StringIO()):  # the error repeats the printed text
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


class Status(NamedTuple):
    """The state of a task."""

    state: str
    """State as Slurm gives it; RUNNING or ENDED for a subprocess; UNKNOWN if Slurm doesn't answer; GONE if it isn't
    listed."""
    reason: str = ""
    script: str = ""
    """Path of the script that Slurm runs for the task."""


def states(handles: Iterable[Handle]) -> dict[str, Status]:
    handles = list(handles)
    local = {h.job: Status("RUNNING" if runs_here(h) else "ENDED") for h in handles if h.engine == "local"}
    return local | queue([handle.job for handle in handles if handle.engine == "slurm"])


def queue(jobs: list[str]) -> dict[str, Status]:
    """The status of Slurm's jobs, by squeue: sacct would need an accounting database."""
    if not jobs:
        return {}
    arrays = ",".join(sorted({job.partition("_")[0] for job in jobs}))
    command = ["squeue", "--noheader", "--array", "--states=all", "--format=%i|%T|%r|%o", f"--jobs={arrays}"]
    try:
        result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="surrogateescape", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return dict.fromkeys(jobs, Status("UNKNOWN", str(error)))
    if result.returncode and "Invalid job id" not in result.stderr:
        return dict.fromkeys(jobs, Status("UNKNOWN", result.stderr.strip()))
    rows = (line.split("|", 3) for line in result.stdout.split("\n") if line)
    listed = {job: Status(state, "" if reason == "None" else reason, script) for job, state, reason, script in rows}
    return {job: listed.get(job, Status("GONE")) for job in jobs}


def runs_here(handle: Handle) -> bool:
    """Whether a subprocess still runs. The process must be submitit's for this folder: its id may have been reused."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{handle.job}/cmdline").read_bytes().split(b"\0")
        return words[-3:-1] == [b"submitit.local._local", handle.folder.encode("utf-8", "surrogateescape")]
    return False


def cancel(handles: Iterable[Handle], pauses: Sequence[float] = PAUSES) -> None:
    """End tasks for good, on Slurm and on this machine; their saved states stay.

    If Slurm doesn't answer, it is asked again after each of `pauses`, in seconds; tasks that could not be ended are
    reported.
    """
    handles = list(handles)
    end_here(handles)
    slurm = {handle.job: os.path.realpath(handle.folder) for handle in handles if handle.engine == "slurm"}
    found = queue(list(slurm))
    for pause in pauses:
        if not (unknown := unanswered(found)):
            break
        time.sleep(pause)
        found |= queue(unknown)
    # Slurm may have reused the job id: our job's script lies beside its log.
    scripts = {job: status.script for job, status in found.items() if os.path.isabs(status.script)}
    ours = [job for job, script in scripts.items() if os.path.realpath(os.path.dirname(script)) == slurm[job]]
    if ours and (problem := scancel(ours)):
        report_left(ours, problem)
    if unknown := unanswered(found):
        report_left(unknown, found[unknown[0]].reason)


def unanswered(found: Mapping[str, Status]) -> list[str]:
    """The jobs whose state is unknown because Slurm doesn't answer."""
    return [job for job, status in found.items() if status.state == "UNKNOWN"]


def scancel(jobs: Sequence[str]) -> str:
    """End Slurm's jobs; returns the reason if some could not be ended. Jobs that have ended already are no problem."""
    try:
        result = subprocess.run(["scancel", *jobs], capture_output=True, encoding="utf-8", errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = [line for line in result.stderr.split("\n") if line and not any(end in line for end in NO_LONGER)]
    return " ".join(lines) if result.returncode else ""


def report_left(jobs: Sequence[str], problem: str) -> None:
    """Print Slurm's jobs that could not be ended, and how to end them."""
    print(f"warning: Slurm's jobs could not be ended ({problem}); end them with `scancel {' '.join(jobs)}`", flush=True)


def end_here(handles: Iterable[Handle]) -> None:
    """End the tasks in subprocesses of this machine; their saved states stay."""
    for handle in handles:
        if handle.engine == "local" and runs_here(handle):
            with contextlib.suppress(OSError):
                tasks = Path(f"/proc/{handle.job}/task/{handle.job}/children").read_text("utf-8").split()
                os.kill(int(handle.job), signal.SIGKILL)  # first the process that would restart the task
                for task in tasks:
                    os.kill(int(task), signal.SIGTERM)

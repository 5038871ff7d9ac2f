"""Slurm's commands: their environment and that of tasks, and queries to a cluster.

A job is given by its id, followed by `;` and the name of its cluster unless that is this machine's own, as `sbatch
--parsable` prints it.
"""

import contextlib
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# Variables of an allocation in which this command runs, and defaults of a user's own queries.
HIDDEN = ("SLURM_", "SLURMD_", "SRUN_", "SQUEUE_")
KEPT = {"SLURM_CONF", "SLURM_JWT"}  # needed to reach Slurm
# sbatch prefers variables to the options in a script. These are options that submitit writes.
IN_SCRIPT = ("ARRAY_INX", "ERROR", "NO_REQUEUE", "OPEN_MODE", "OUTPUT", "SIGNAL")
NAMES = {"time": "TIMELIMIT", "mem": "MEM_PER_NODE"}  # options with another name as variables


class Status(NamedTuple):
    """The state of a task."""

    state: str
    """State as Slurm gives it; RUNNING or ENDED for a subprocess; UNKNOWN if Slurm doesn't answer; GONE if it isn't
    listed."""
    reason: str = ""


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


def ask(cluster: str, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Slurm for a cluster (empty: this machine's own). If that fails, the result has status 1 and the
    reason as its errors."""
    command = [program, *cluster_flag(cluster), *arguments]
    try:
        with task_environment():
            return subprocess.run(command, capture_output=True, encoding="utf-8", errors="surrogateescape", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def job_on(cluster: str, number: str) -> str:
    """Return the name of a job: its id, and its cluster if that is given."""
    return f"{number};{cluster}" if cluster else number


def cluster_flag(cluster: str) -> list[str]:
    return [f"--clusters={cluster}"] if cluster else []


def largest_array(cluster: str) -> int:
    """Return the largest number of tasks of a job array; a very large one if the cluster doesn't report it."""
    shown = ask(cluster, "scontrol", "show", "config").stdout
    limit = re.search(r"^MaxArraySize\s*=\s*(\d+)", shown, re.MULTILINE)
    return max(1, int(limit[1])) if limit else sys.maxsize


def by_cluster(jobs: Iterable[str]) -> dict[str, list[str]]:
    """Group jobs by cluster."""
    groups = defaultdict[str, list[str]](list)
    for job in jobs:
        groups[job.partition(";")[2]].append(job)
    return groups


def array_ids(jobs: Iterable[str]) -> list[str]:
    """Return the ids of the jobs' arrays, each once."""
    return sorted({re.split("[_;]", job)[0] for job in jobs})


def cancel_line(jobs: Iterable[str]) -> str:
    """Return the command line that ends the arrays of these jobs; empty for no jobs."""
    commands = (["scancel", *cluster_flag(cluster), *array_ids(its)] for cluster, its in by_cluster(jobs).items())
    return "; ".join(map(" ".join, commands))


def cancel(jobs: Iterable[str]) -> None:
    """End the arrays of these jobs."""
    for cluster, its in by_cluster(jobs).items():
        ask(cluster, "scancel", *array_ids(its))


def queue(jobs: Iterable[str]) -> dict[str, Status]:
    """Query the status of jobs from squeue; sacct would need an accounting database."""
    return {job: state for cluster, its in by_cluster(jobs).items() for job, state in queue_on(cluster, its).items()}


def queue_on(cluster: str, jobs: list[str]) -> dict[str, Status]:
    fields = ("--noheader", "--array", "--states=all", "--format=%i|%T|%r")
    result = ask(cluster, "squeue", *fields, f"--jobs={','.join(array_ids(jobs))}")
    if result.returncode and "Invalid job id" not in result.stderr:
        return dict.fromkeys(jobs, Status("UNKNOWN", result.stderr.strip()))
    lines = [line for line in result.stdout.split("\n") if line and not line.startswith("CLUSTER: ")]
    if other := [line for line in lines if line.count("|") < 2]:
        return dict.fromkeys(jobs, Status("UNKNOWN", f"squeue printed {other[0]}"))
    rows = (line.split("|", 2) for line in lines)
    listed = {job: Status(state, "" if reason == "None" else reason) for job, state, reason in rows}
    return {job: listed.get(job.partition(";")[0], Status("GONE")) for job in jobs}

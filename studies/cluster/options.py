"""Where tasks run, and the resources of each on Slurm; see `menagerie.studies.cluster.jobs`."""

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import SOME_PROCESSES, Range, validate

# Signs that submitit and Slurm replace in file names (%j, %a; in Slurm a backslash stops that), or can't read in a
# script.
SPECIAL = {"local": "%", "slurm": "%\\\n"}


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
    """GPUs; with --device cuda at least one."""
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
    """Options of sbatch by name; True stands for a flag without a value."""
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


def check_cluster(cluster: Cluster, folder: Path, cores: int = 1, gpus: int = 0) -> None:
    """Raise if tasks can't be submitted, before anything is created; `sbatch --test-only` checks the options.

    `folder` is the folder where tasks will write.
    """
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
    given = sbatch_options(cluster.slurm, cores, gpus).items()
    flags = [f"--{name}" if value is True else f"--{name}={value}" for name, value in given]
    result = subprocess.run(["sbatch", "--test-only", *flags, "--wrap=true"], capture_output=True, text=True)
    if result.returncode:
        raise refused(result.stderr)


def check_folder(cluster: Cluster, folder: Path) -> None:
    """Raise for a folder whose path Slurm or submitit would change: files would be written elsewhere."""
    path = str(folder.absolute())
    if special := [character for character in SPECIAL.get(cluster.engine, "") if character in path]:
        raise UserError(
            f"--cluster {cluster.engine} can't write to {path!r}: submitit and Slurm read {special[0]!r} in a path as "
            "something else; choose another folder"
        )


def refused(errors: str) -> UserError:
    """Make an error from the last line of sbatch's output."""
    last = (errors.strip().splitlines() or ["no reason given"])[-1]
    reason = last.rpartition("error: ")[2].rpartition("failure: ")[2]
    return UserError(f"Slurm refuses the tasks: {reason}; see `sinfo`, and the --slurm options under --help")

"""Where tasks run, and what is asked of Slurm for each; `cluster_jobs` submits them."""

import shutil
import subprocess
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import tyro

from envs.common.errors import UserError

LEAST_MINUTES = 5  # Slurm warns a task 90 seconds before its end


@dataclass(frozen=True)
class Slurm:
    """What to ask Slurm for, for each task."""

    partition: str = ""
    """Partition; empty takes the cluster's default."""
    minutes: int = 240
    """Time limit; a task that reaches it saves its state and queues again."""
    cpus: int = 0
    """Cores; 0 takes as many as the task has threads."""
    gigabytes: float = 0.0
    """Memory; 0 takes the partition's default."""
    gpus: int = 0
    """GPUs; with --device cuda at least one."""
    at_once: int = 100
    """The most tasks of the array that run at once."""
    sbatch: tuple[str, ...] = ()
    """Further options of sbatch, such as account=mine qos=low."""


@dataclass(frozen=True)
class Cluster:
    """Where tasks run."""

    engine: Annotated[Literal["none", "local", "slurm"], tyro.conf.arg(name="cluster")] = "none"
    """none: in workers of this command; slurm: in a job array; local: the cluster's path in subprocesses here."""
    slurm: Slurm = field(default_factory=Slurm)


def sbatch_options(slurm: Slurm, cores: int, gpus: int) -> dict[str, Any]:
    """Options of sbatch by name; True is for one without a value."""
    own = {
        "partition": slurm.partition,
        "time": slurm.minutes,
        "cpus-per-task": slurm.cpus or cores,
        "mem": f"{round(slurm.gigabytes * 1024)}M" if slurm.gigabytes else "",
        "gpus-per-node": max(slurm.gpus, gpus) or "",
        "requeue": True,
    }
    further = dict(option.lstrip("-").partition("=")[::2] for option in slurm.sbatch)
    return {name: value for name, value in own.items() if value} | {name: v or True for name, v in further.items()}


def check_cluster(cluster: Cluster, cores: int = 1, gpus: int = 0) -> None:
    """Raise on what can't be submitted, before anything is made: Slurm itself is asked."""
    if cluster.engine == "none":
        return
    try:
        import submitit  # noqa: F401
    except ImportError:
        raise UserError(f"--cluster {cluster.engine} needs submitit: pip install submitit") from None
    if cluster.engine == "local":
        return
    if missing := [name for name in ("sbatch", "srun", "squeue", "scontrol") if not shutil.which(name)]:
        raise UserError(f"--cluster slurm: no {missing[0]} here; start it where jobs are submitted, or use local")
    slurm = cluster.slurm
    if slurm.minutes < LEAST_MINUTES or slurm.at_once < 1 or min(slurm.cpus, slurm.gpus, slurm.gigabytes) < 0:
        raise UserError(f"--slurm.minutes must be at least {LEAST_MINUTES}, --slurm.at-once 1, the others 0")
    given = sbatch_options(slurm, cores, gpus).items()
    flags = [f"--{name}" if value is True else f"--{name}={value}" for name, value in given]
    asked = subprocess.run(["sbatch", "--test-only", *flags, "--wrap=true"], capture_output=True, text=True)
    if asked.returncode:
        raise refused(asked.stderr)


def refused(errors: str) -> UserError:
    """sbatch's last word as an error; all it says has to do with what was asked of it."""
    last = (errors.strip().splitlines() or ["no reason given"])[-1]
    reason = last.rpartition("error: ")[2].rpartition("failure: ")[2]
    return UserError(f"Slurm refuses the tasks: {reason}; see `sinfo`, and the --slurm options under --help")

"""Trains in several processes of one cluster task, as torchrun does in several processes of a command.

The task's process is the first. It starts the others, which take the steps of its trainings together with it
(menagerie.studies.runs.followers). Each process has its own GPU, if GPUs are used.
"""

import os
from collections.abc import Callable

from menagerie.envs.core.errors import run_command
from menagerie.envs.core.processes import end_with_parent, workers_context
from menagerie.studies.runs.followers import follow_trainings, ignore_signals, run_together
from menagerie.studies.runs.machine import start_server
from menagerie.studies.runs.together import join_ranks

HERE = "127.0.0.1"


def run_in_processes(body: Callable[[], None], count: int, threads: int) -> None:
    """Call `body` in this process, as the first of `count` processes with `threads` threads each. All others have ended
    when this returns."""
    from torch.distributed import TCPStore

    start_server(threads)
    meeting = TCPStore(HERE, 0, is_master=True, wait_for_workers=False)  # takes a free port
    place = {"MASTER_ADDR": HERE, "MASTER_PORT": str(meeting.port), "WORLD_SIZE": str(count)}
    place |= {"TORCHELASTIC_USE_AGENT_STORE": "True"}  # the first process too only connects to it
    others = [workers_context().Process(target=follow_in_task, args=(place, rank)) for rank in range(1, count)]
    for process in others:
        process.start()
    take_place(place, 0)
    run_together(body)
    for process in others:
        process.join()


def take_place(place: dict[str, str], rank: int) -> None:
    """Set the environment variables by which torchrun tells a process its rank and how to find the others."""
    os.environ.update(place | {"RANK": str(rank), "LOCAL_RANK": str(rank)})


def follow_in_task(place: dict[str, str], rank: int) -> None:
    """Follow the trainings of a task's first process, and end with it. Slurm's signals are handled by the first process
    only."""
    ignore_signals()
    end_with_parent()
    take_place(place, rank)
    run_command(lambda: follow_trainings(join_ranks()))

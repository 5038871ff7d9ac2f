"""Processes that train together, as torchrun starts them, but forks of the server that has loaded torch already."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from menagerie.envs.core.processes import end_with_parent, workers_context
from menagerie.models.ranks import Ranks, Share
from menagerie.studies.runs.machine import start_server

WAIT_SECONDS = 600


def body(function: Callable[..., Any], rank: int, count: int, folder: Path, arguments: tuple[Any, ...]) -> None:
    """Run a function in a process; what it returns is in a file, unless the process ends before."""
    end_with_parent()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=count)
    torch.save(function(Ranks(Share(rank, count)), *arguments), folder / f"{rank}.pt")
    if torch.distributed.is_initialized():  # a function may have left it
        torch.distributed.destroy_process_group()


def together(folder: Path, count: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Run `function(ranks, *arguments)` in `count` processes; returns results, or the exit status of a failed one."""
    folder.mkdir()
    start_server(1)
    context = workers_context()
    every = [context.Process(target=body, args=(function, k, count, folder, arguments)) for k in range(count)]
    for process in every:
        process.start()
    for process in every:
        process.join(WAIT_SECONDS)
        assert process.exitcode is not None, "it never ended"
    files = [folder / f"{k}.pt" for k in range(count)]
    return [
        torch.load(file, weights_only=True) if file.exists() else process.exitcode
        for file, process in zip(files, every, strict=True)
    ]

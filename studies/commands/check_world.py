"""Render every scene of a world in memory; check visibility, frame, spatial captions, and that no two are alike."""

import time
from dataclasses import dataclass
from typing import Annotated

from menagerie.envs.core.processes import serve
from menagerie.envs.core.progress import progress_bars
from menagerie.envs.core.validation import PROCESSES, SIDE, Range
from menagerie.studies.commands.make import RENDERING


@dataclass(frozen=True)
class Config:
    world: str = "pug"
    """A world by name, or a TOML file."""
    resolution: Annotated[int, SIDE] = 64
    """Side of the square images, in pixels."""
    view: Annotated[int, Range(0, 1_000_000)] = 0
    """Number of the view."""
    workers: Annotated[int, PROCESSES] = 2
    """Processes that render factors."""


def run(config: Config) -> int:
    """Print the problems, if any, and the time taken."""
    from menagerie.envs.worlds import load_world
    from menagerie.generators.storage.scene_checks import check_factorial

    start = time.perf_counter()
    with progress_bars("factors", "scenes") as progress:
        world = load_world(config.world)
        if config.workers > 1:
            serve(RENDERING)
        scenes, problems = check_factorial(world, config.resolution, config.view, config.workers, progress)
    for problem in problems[:20]:
        print(problem)
    seconds = time.perf_counter() - start
    print(f"{scenes} scenes rendered and checked in {seconds:.1f} s; {len(problems)} problems")
    return int(bool(problems))

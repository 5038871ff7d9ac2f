"""How fast are our parts, beside what others use? Paired measurements on this machine.

    python studies/throughput.py rendering
    python studies/throughput.py training
    python studies/throughput.py parts

`rendering`: the same random pairs, in memory, by our compositor (shadows of one animal on the
other included), our own direct renderer, pyrender (OpenGL, with shadows), pybullet's
TinyRenderer and, where `blender` is on the path, Cycles. Rounds take turns, so that what else
the machine does falls on all alike; CPU time counts all threads of a process.

`training`: what a step of each model costs, part by part, and which texts of a batch are right of which
images, at batch 64, 256 and 1 024.

`parts`: parameters and multiplications of images, texts and their comparison, for towers of any size
(OC-CLIP's table 9), and on request how many images pass per second.
"""

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from menagerie.envs.core.command_help import chosen_command, read_options, started_as
from menagerie.envs.core.errors import UserError, run_command
from menagerie.envs.core.validation import SIDE, Range
from menagerie.studies.analysis.part_costs import Parts, parts
from menagerie.studies.analysis.step_timing import Training, training

if TYPE_CHECKING:
    from menagerie.envs.scene import Scene
    from menagerie.envs.world import World


@dataclass(frozen=True)
class Rendering:
    """Compare renderers on the same scenes, interleaved."""

    world: str = "pug"
    """World to draw from."""
    resolution: Annotated[int, SIDE] = 224
    """Pixels along an image's side."""
    scenes: Annotated[int, Range(1, 10_000)] = 24
    """Random pairs that every renderer draws in every round."""
    rounds: Annotated[int, Range(1, 10_000)] = 5
    """Rounds; the figures are medians over them."""
    cycles_samples: Annotated[int, Range(1, 100_000)] = 16
    """Samples a pixel of Blender's Cycles, if it is installed."""


class Timing(NamedTuple):
    """The time that one image took in one round."""

    wall: float  # seconds
    cpu: float  # seconds, all threads


FAST = 200  # repeats of what would else be over before it can be timed
Draw = Callable[[list["Scene"]], Timing | None]


def timed(draw: Callable[[list["Scene"]], object]) -> Draw:
    """Time `draw` over scenes."""

    def measure(scenes: list["Scene"]) -> Timing:
        wall, cpu = time.perf_counter(), time.process_time()
        draw(scenes)
        return Timing((time.perf_counter() - wall) / len(scenes), (time.process_time() - cpu) / len(scenes))

    return measure


def composer(config: Rendering, world: "World") -> Draw:
    """Our compositor, into memory that is used again, as a training loop would."""
    from menagerie.envs.render.renderer import Renderer

    ours, buffers = Renderer(world, config.resolution), {}

    def draw(scenes: list["Scene"]) -> None:
        buffers[len(scenes)] = ours.render(scenes, buffers.get(len(scenes)))

    def rounds(scenes: list["Scene"]) -> None:
        for _ in range(FAST):
            draw(scenes)

    def measure(scenes: list["Scene"]) -> Timing:
        return Timing(*(seconds / FAST for seconds in timed(rounds)(scenes)))

    return measure


def renderers(config: Rendering, world: "World") -> dict[str, Draw]:
    """All that can draw here; what can't says why."""
    from menagerie.envs.checks.direct import render_directly
    from menagerie.envs.checks.external_renderers import open_external_renderer

    cutouts = dict(world.cutouts)
    draws: dict[str, Draw] = {
        "menagerie": composer(config, world),
        "menagerie, direct": timed(
            lambda scenes: [render_directly(world.as_drawn(scene), config.resolution, cutouts) for scene in scenes]
        ),
    }
    for name, method in (("pyrender", "picture"), ("tiny", "render")):
        try:
            draw = getattr(open_external_renderer(name, config.resolution), method)
            draws[name] = timed(lambda scenes, draw=draw: [draw(scene) for scene in scenes])
        except UserError as error:
            print(f"left out: {error}")
    if shutil.which("blender"):
        from menagerie.envs.checks.blender import render_cycles

        draws["cycles"] = lambda scenes: Timing(*render_cycles(scenes, config.resolution, config.cycles_samples))
    else:
        print("left out: Cycles, there is no blender on the path")
    return draws


def measure(draws: dict[str, Draw], scenes: list["Scene"], rounds: int) -> dict[str, list[Timing]]:
    """Every renderer in every round, the first of which (compiling, loading) doesn't count."""
    from rich.progress import track

    timings: dict[str, list[Timing]] = {name: [] for name in draws}
    for round_ in track(range(rounds + 1), "rounds"):
        for name, draw in draws.items():
            timing = draw(scenes)
            if round_:
                timings[name].append(timing)
    return timings


def rendering(config: Rendering) -> int:
    from statistics import median

    from menagerie.envs.worlds import load_world, random_scenes
    from menagerie.studies.runs.machine import processor

    world = load_world(config.world)
    scenes = random_scenes(world, config.scenes, seed=0, pairs=1.0)
    timings = measure(renderers(config, world), scenes, config.rounds)
    ours = timings["menagerie"]
    print(f"{config.resolution} px, {config.scenes} pairs, {config.rounds} rounds, {processor()}")
    print(f"{'':<20}{'images/s':>12}{'CPU-ms':>12}{'our CPU rate over it':>24}")
    for name, theirs in timings.items():
        # Ratios within a round, then their median: what disturbs a round disturbs both.
        ratio = median(t.cpu / o.cpu for t, o in zip(theirs, ours, strict=True))
        wall, cpu = median(t.wall for t in theirs), median(t.cpu for t in theirs)
        print(f"{name:<20}{1 / wall:>12.1f}{1000 * cpu:>12.3f}{ratio:>24.1f}")
    return 0


# By the word that chooses it: its options and what prints it.
MEASUREMENTS: dict[str, tuple[type, Callable[[Any], int]]] = {
    "rendering": (Rendering, rendering),
    "training": (Training, training),
    "parts": (Parts, parts),
}


def main() -> int:
    """Run the measurement named first."""
    command = started_as()
    name = chosen_command(command, __doc__, tuple(MEASUREMENTS))
    options, measure = MEASUREMENTS[name]
    return measure(read_options(options, sys.argv[2:], f"{command} {name}", options.__doc__))


if __name__ == "__main__":
    run_command(main)

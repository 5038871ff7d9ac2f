"""How fast are parts of ours, compared with those of other libraries? Paired measurements on this machine.

    python studies/throughput.py rendering
    python studies/throughput.py rendering --layout apart --objects 6
    python studies/throughput.py atlas
    python studies/throughput.py training
    python studies/throughput.py stages
    python studies/throughput.py peers
    python studies/throughput.py pairs
    python studies/throughput.py parts
    python studies/throughput.py growth
    python studies/throughput.py loading --splits SMALL.h5 LARGE.h5
    python studies/throughput.py scale

`rendering`: the same random scenes, in memory, by our compositor (with shadows of one animal on the other), our direct
renderer, pyrender (OpenGL, with shadows) and pybullet's TinyRenderer. They take turns, so that other load slows all
alike; CPU time is that of all threads.

`atlas`: the cost of atlas entries, which our compositor renders once, for every animal in every place of a layout; then
the cost of a view's backgrounds and of an entry in one process.

`training`: the cost of a step of each model, part by part, and the time to find which texts of a batch are true of
which images, at batch 64, 256 and 1 024.

`stages`: the cost of images, texts, their comparison and the update of weights in a step, forward and backward; models
take their steps in turns.

`peers`: reading, a training step and scoring, ours in turns with webdataset's and open_clip's, and the least time of
their operations or bytes on this machine.

`pairs`: scores of all images with all texts, forward and backward, at once and in chunks: time, memory, and how
far scores and gradients differ.

`parts`: parameters and multiplications of images, texts and their comparison, for towers of any size
(OC-CLIP's table 9), and on request how many images pass per second.

`growth`: time and memory by the number of scenes, as exponents: the sampler, and splits that are made, opened, trained
on and audited; a training step by its batch; and a grid's report by the number of runs.

`loading`: steps whose batches come from loader processes, on splits of your own in turns: time and memory.

`scale`: a forecast of a long training on one device or many, by a cost model that is fitted to short trainings here and
checked on a larger one.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from menagerie.envs.core.command_help import choose_command, read_options, running_command
from menagerie.envs.core.errors import UserError, run_command
from menagerie.envs.core.options import docstring
from menagerie.envs.core.validation import SIDE, Range
from menagerie.envs.layouts import MOST
from menagerie.studies.analysis.growth import measure_growth
from menagerie.studies.analysis.growth_parts import Growth
from menagerie.studies.analysis.loading import Loading, measure_loading
from menagerie.studies.analysis.pair_costs import Pairs, measure_pairs
from menagerie.studies.analysis.part_costs import Parts, measure_parts
from menagerie.studies.analysis.peers import Peers, measure_peers
from menagerie.studies.analysis.scale import Scale, measure_scale
from menagerie.studies.analysis.step_stages import Stages, measure_stages
from menagerie.studies.analysis.step_timing import StepTiming, measure_training
from menagerie.studies.frame.report_growth import report_growth

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
    layout: Literal["", "apart", "rows", "overlap"] = ""
    """Layout of the animals; empty: beside or above one another, as pairs."""
    objects: Annotated[int, Range(2, MOST)] = 2
    """Animals in a scene; more than two need a layout."""
    scenes: Annotated[int, Range(1, 10_000)] = 24
    """Random scenes that every renderer draws in every round."""
    rounds: Annotated[int, Range(1, 10_000)] = 5
    """Number of rounds; the figures are medians over them."""


@dataclass(frozen=True)
class Atlas:
    """Render every animal in every place of a layout, in all textures and several views."""

    world: str = "pug-textures"
    """World to draw from."""
    resolution: Annotated[int, SIDE] = 64
    """Pixels along an image's side."""
    views: Annotated[int, Range(1, 10_000)] = 20
    """Views, with cameras and light of their own."""


class Timing(NamedTuple):
    """The time that one image took in one round."""

    wall: float  # seconds
    cpu: float  # seconds, all threads


FAST = 200  # repeats of a call that is too short to time
Draw = Callable[[list["Scene"]], Timing | None]


def time_drawing(draw: Callable[[list["Scene"]], object]) -> Draw:
    """Return a function that draws scenes with `draw` and returns the mean time of one scene."""

    def measure(scenes: list["Scene"]) -> Timing:
        wall, cpu = time.perf_counter(), time.process_time()
        draw(scenes)
        return Timing((time.perf_counter() - wall) / len(scenes), (time.process_time() - cpu) / len(scenes))

    return measure


def composer(config: Rendering, world: "World") -> Draw:
    """Return a timed function that draws with our compositor into reused memory, as in a training loop."""
    from menagerie.envs.render.renderer import Renderer

    ours, buffers = Renderer(world, config.resolution), {}

    def draw(scenes: list["Scene"]) -> None:
        buffers[len(scenes)] = ours.render(scenes, buffers.get(len(scenes)))

    def rounds(scenes: list["Scene"]) -> None:
        for _ in range(FAST):
            draw(scenes)

    def measure(scenes: list["Scene"]) -> Timing:
        return Timing(*(seconds / FAST for seconds in time_drawing(rounds)(scenes)))

    return measure


def renderers(config: Rendering, world: "World") -> dict[str, Draw]:
    """Return the renderers that can run here, by name; print why the others can't."""
    from menagerie.envs.checks.direct import render_directly
    from menagerie.envs.checks.external_renderers import EXTERNAL_RENDERERS

    draws: dict[str, Draw] = {
        "menagerie": composer(config, world),
        "menagerie, direct": time_drawing(
            lambda scenes: [render_directly(s, config.resolution, world) for s in scenes]
        ),
    }
    for name, method in (("pyrender", "picture"), ("tiny", "render")):
        try:
            draw = getattr(EXTERNAL_RENDERERS[name](config.resolution), method)
            draws[name] = time_drawing(lambda scenes, draw=draw: [draw(scene) for scene in scenes])
        except UserError as error:
            print(f"left out: {error}")
    return draws


def time_rounds(draws: dict[str, Draw], scenes: list["Scene"], rounds: int) -> dict[str, list[Timing]]:
    """Time every renderer in every round; the first round (compiling, loading) doesn't count."""
    from rich.progress import track

    timings: dict[str, list[Timing]] = {name: [] for name in draws}
    for round_ in track(range(rounds + 1), "rounds"):
        for name, draw in draws.items():
            timing = draw(scenes)
            if round_:
                timings[name].append(timing)
    return timings


def scenes_to_draw(config: Rendering, world: "World") -> list["Scene"]:
    """Return the scenes that all renderers draw."""
    from menagerie.envs.worlds import random_in_layout, random_scenes

    if not config.layout:
        if config.objects != 2:
            raise UserError(f"--objects {config.objects} needs a --layout: apart, rows or overlap")
        return random_scenes(world, config.scenes, seed=0, pairs=1.0)
    if len(world.animals) < config.objects:
        raise UserError(f"--objects {config.objects}: world {config.world!r} has only {len(world.animals)} animals")
    drawn = random_in_layout(world, config.layout, config.scenes * MOST, seed=0)
    return [scene for scene in drawn if len(scene.objects) == config.objects][: config.scenes]


def measure_rendering(config: Rendering) -> int:
    from statistics import median

    from menagerie.envs.worlds import load_world
    from menagerie.studies.runs.machine import processor

    world = load_world(config.world)
    scenes = scenes_to_draw(config, world)
    timings = time_rounds(renderers(config, world), scenes, config.rounds)
    ours = timings["menagerie"]
    what = f"scenes of {config.objects} animals, {config.layout}" if config.layout else "pairs"
    print(f"{config.resolution} px, {config.scenes} {what}, {config.rounds} rounds, {processor()}")
    print(f"{'':<20}{'images/s':>12}{'CPU-ms':>12}{'our CPU rate over it':>24}")
    for name, theirs in timings.items():
        # The median of ratios within a round, whose disturbances affect both alike.
        ratio = median(t.cpu / o.cpu for t, o in zip(theirs, ours, strict=True))
        wall, cpu = median(t.wall for t in theirs), median(t.cpu for t in theirs)
        print(f"{name:<20}{1 / wall:>12.1f}{1000 * cpu:>12.3f}{ratio:>24.1f}")
    return 0


def measure_atlas(config: Atlas) -> int:
    from itertools import product
    from tempfile import TemporaryDirectory

    from menagerie.envs.render.renderer import Renderer
    from menagerie.envs.scene import Object, Scene
    from menagerie.envs.slots import LAYOUT_SLOTS
    from menagerie.envs.worlds import load_world
    from menagerie.studies.runs.machine import processor

    world = load_world(config.world)
    size, texture = (world.sizes or ("",))[0], world.textures[0]
    scenes = [
        Scene(world.backgrounds[0], (Object(animal, texture, place, size),), view)
        for animal, place, view in product(world.animals, LAYOUT_SLOTS, range(config.views))
    ]
    with TemporaryDirectory() as folder:
        renderer, before = Renderer(world, config.resolution, Path(folder)), time.process_time()
        renderer.prepare(scenes)
        seconds = time.process_time() - before
        size_in_bytes = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    print(f"{config.world}, {config.resolution} px, {len(LAYOUT_SLOTS)} places, {config.views} views, {processor()}")
    print(f"{len(scenes)} entries, {seconds / 60:.1f} CPU minutes, {size_in_bytes / 1e9:.2f} GB")
    for what, milliseconds in entry_costs(world, scenes, config.resolution).items():
        print(f"{what:<32}{milliseconds:>8.1f} CPU-ms")
    return 0


def entry_costs(world: "World", scenes: list["Scene"], resolution: int) -> dict[str, float]:
    """Return the processor milliseconds of a view's backgrounds and of an entry, medians over some scenes of one
    object, and the mean of an entry when the views come in random order."""
    from random import Random
    from statistics import mean, median

    from menagerie.envs.drawing.camera import view_of
    from menagerie.envs.render.entry import build_entry
    from menagerie.envs.render.renderables import EntryKey, ground

    def build(scene: "Scene") -> None:
        key = EntryKey.of(scene.objects[0], scene.view)
        build_entry(key, world.textures, world.backgrounds, resolution, dict(world.cutouts))

    def draw(scene: "Scene") -> None:
        ground.cache_clear()
        for name in world.backgrounds:
            ground(name, resolution, view_of(scene.view))

    def cost(do: Callable[["Scene"], None], scene: "Scene") -> float:
        before = time.process_time()
        do(scene)
        return 1000 * (time.process_time() - before)

    chosen = Random(0).sample(scenes, min(48, len(scenes)))
    grounds, entries = zip(*((cost(draw, scene), cost(build, scene)) for scene in chosen), strict=True)
    return {
        "the backgrounds of a view": median(grounds),
        "an entry, backgrounds drawn": median(entries),
        "an entry, views in random order": mean(cost(build, scene) for scene in chosen),
    }


# By name: the options of a measurement, and the function that prints it.
MEASUREMENTS: dict[str, tuple[type, Callable[[Any], int]]] = {
    "rendering": (Rendering, measure_rendering),
    "atlas": (Atlas, measure_atlas),
    "training": (StepTiming, measure_training),
    "stages": (Stages, measure_stages),
    "peers": (Peers, measure_peers),
    "pairs": (Pairs, measure_pairs),
    "parts": (Parts, measure_parts),
    "growth": (Growth, partial(measure_growth, report=report_growth)),
    "loading": (Loading, measure_loading),
    "scale": (Scale, measure_scale),
}


def main() -> int:
    """Run the measurement that the first argument names."""
    from menagerie.studies.runs.together import check_joined

    check_joined()
    command = running_command()
    name = choose_command(command, docstring(sys.modules[__name__]), tuple(MEASUREMENTS))
    options, measure = MEASUREMENTS[name]
    return measure(read_options(options, sys.argv[2:], f"{command} {name}", docstring(options)))


if __name__ == "__main__":
    run_command(main)

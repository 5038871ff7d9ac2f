"""How fast are parts of ours, compared with those of other libraries? Paired measurements on this machine.

    python studies/throughput.py rendering
    python studies/throughput.py rendering --layout apart --objects 6
    python studies/throughput.py steps --models clip oc-clip sparo
    python studies/throughput.py peers
    python studies/throughput.py growth --scenes 1000 10000

`rendering`: the same random scenes, in memory, by our compositor (with shadows of one animal on the other), our direct
renderer, pyrender (OpenGL, with shadows) and pybullet's TinyRenderer.

`steps`: a training step of each model by its stages, forward and backward: images, texts, their comparison, the update
of weights; beside them parameters and multiply-adds.

`peers`: a training step and scoring of ours and of open_clip, with the same weights.

`growth`: making, opening, training on and auditing splits of more and more scenes, as exponents: with exponent e, twice
the scenes take 2^e times as long.

What is compared takes turns, so that other load slows all alike. Times are processor time of all threads; on a GPU,
elapsed time until the device has finished.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

from menagerie.envs.core.command_help import choose_command, read_options, running_command
from menagerie.envs.core.errors import UserError, run_command
from menagerie.envs.core.options import docstring
from menagerie.envs.core.validation import SIDE, Range, Several
from menagerie.envs.layouts import MOST
from menagerie.envs.worlds import load_world
from menagerie.models.recipe import Recipe
from menagerie.studies.analysis.step_times import (
    Peers,
    Steps,
    measure_peers,
    measure_steps,
    new_scorer,
    ratio,
    time_in_turns,
)
from menagerie.studies.runs.machine import processor, settle_torch

if TYPE_CHECKING:
    from menagerie.envs.scene import Scene
    from menagerie.envs.world import World

FAST = 200  # repeats of a call that is too short to time
Draw = Callable[[list["Scene"]], object]


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
class Growth:
    """Time making, opening, training on and auditing splits by their number of scenes."""

    scenes: Annotated[tuple[int, ...], Range(10, 10**9), Several(1)] = (1_000, 3_000, 10_000)
    """Training scenes of splits of multi-object scenes."""
    world: str = "eight-textures"
    """World of the splits."""
    resolution: Annotated[int, SIDE] = 32
    """Pixels along an image's side."""


def renderers(config: Rendering, world: "World") -> dict[str, Draw]:
    """Return the renderers that can run here, by name; print why the others can't. Ours draws the scenes `FAST` times,
    into reused memory, as in a training loop."""
    from menagerie.envs.checks.direct import render_directly
    from menagerie.envs.checks.external_renderers import EXTERNAL_RENDERERS
    from menagerie.envs.render.renderer import Renderer

    ours, buffers = Renderer(world, config.resolution), {}

    def compose(scenes: list["Scene"]) -> None:
        for _ in range(FAST):
            buffers[len(scenes)] = ours.render(scenes, buffers.get(len(scenes)))

    direct = partial(render_directly, resolution=config.resolution, world=world)
    draws: dict[str, Draw] = {"menagerie": compose, "menagerie, direct": lambda scenes: [*map(direct, scenes)]}
    for name, method in (("pyrender", "picture"), ("tiny", "render")):
        try:
            draw = getattr(EXTERNAL_RENDERERS[name](config.resolution), method)
            draws[name] = lambda scenes, draw=draw: [*map(draw, scenes)]
        except UserError as error:
            print(f"left out: {error}")
    return draws


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


def measure_rendering(config: Rendering) -> None:
    """Print images a second and processor time an image of each renderer."""
    world = load_world(config.world)
    scenes = scenes_to_draw(config, world)
    calls = {name: lambda number, draw=draw: draw(scenes) for name, draw in renderers(config, world).items()}
    spans = {name: [s / len(scenes) for s in its] for name, its in time_in_turns(calls, config.rounds).items()}
    spans["menagerie"] = [seconds / FAST for seconds in spans["menagerie"]]
    what = f"scenes of {config.objects} animals, {config.layout}" if config.layout else "pairs"
    print(f"{config.resolution} px, {config.scenes} {what}, {config.rounds} rounds, {processor()}")
    print(f"{'':<20}{'CPU-ms an image':>18}{'over ours':>12}")
    for name, its in spans.items():
        print(f"{name:<20}{1000 * median(its):>18.3f}{ratio(its, spans['menagerie']):>12.1f}")


def split_times(config: Growth, folder: Path, scenes: int) -> Iterator[tuple[str, float]]:
    """Yield the processor seconds to plan, make, open, compose, train on and audit a split of multi-object scenes."""
    from menagerie.generators.audit.run import audit
    from menagerie.generators.splits.multi_object import MultiObjectRecipe
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.generators.storage.folder import SplitFolder
    from menagerie.models.training.loop import train_scorer

    def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
        start = time.process_time()
        found = call()
        return time.process_time() - start, found

    few = {"objects": (2, 3), "test_objects": (2, 3), "searches": (), "triplets": ()}
    recipe = MultiObjectRecipe(world=config.world, train_scenes=scenes, test_scenes=100, views=4, test_views=1, **few)
    store = SplitFolder(folder, load_world(config.world), config.resolution)
    spent, planned = seconds(recipe.subsets)
    yield "plan", spent
    store.prepare([scene for its in planned.values() for scene in its], store.renderer())
    spent, path = seconds(lambda: store.make(recipe))
    yield "make", spent
    spent, data = seconds(lambda: SplitDataset(path, "train", preload=True))
    yield "open it and compose its images", spent
    training = Recipe(steps=max(1, len(data) // 64), batch=64, warmup=1)
    small = Peers(architecture="nano", world=config.world, resolution=config.resolution)
    yield "train on it once", seconds(lambda: train_scorer(new_scorer("clip", small, data), data, training, 0))[0]
    yield "audit", seconds(lambda: audit(path))[0]


def measure_growth(config: Growth) -> None:
    """Print the seconds of each part by the number of scenes, and its exponent from the last two numbers, because a
    constant part dominates at small ones."""
    settle_torch(threads=1)
    rows: dict[str, list[float]] = {}
    for scenes in config.scenes:
        with TemporaryDirectory() as folder:
            for name, value in split_times(config, Path(folder), scenes):
                rows.setdefault(name, []).append(value)
    print(f"processor seconds by number of scenes; {processor()}")
    print(f"{'':<32}" + "".join(f"{n:>12}" for n in config.scenes) + f"{'exponent':>10}")
    for name, its in rows.items():
        last = ""
        if len(its) > 1:
            last = f"{math.log(its[-1] / its[-2]) / math.log(config.scenes[-1] / config.scenes[-2]):>10.2f}"
        print(f"{name:<32}" + "".join(f"{value:>12.3g}" for value in its) + last)


# By name: the options of a measurement, and the function that prints it.
MEASUREMENTS: dict[str, tuple[type, Callable[[Any], None]]] = {
    "rendering": (Rendering, measure_rendering),
    "steps": (Steps, measure_steps),
    "peers": (Peers, measure_peers),
    "growth": (Growth, measure_growth),
}


def main() -> int:
    """Run the measurement that the first argument names."""
    from menagerie.studies.runs.together import check_joined

    check_joined()
    command = running_command()
    name = choose_command(command, docstring(sys.modules[__name__]), tuple(MEASUREMENTS))
    options, measure = MEASUREMENTS[name]
    measure(read_options(options, sys.argv[2:], f"{command} {name}", docstring(options)))
    return 0


if __name__ == "__main__":
    run_command(main)

"""How fast are parts of ours, compared with those of other libraries? Paired measurements on this machine.

    python studies/throughput.py rendering
    python studies/throughput.py rendering --layout apart --objects 6
    python studies/throughput.py steps --models clip oc-clip sparo
    python studies/throughput.py peers
    python studies/throughput.py growth --scenes 1000 10000

`rendering`: the same random scenes, in memory, by our compositor, our direct renderer, pyrender (OpenGL) and pybullet's
TinyRenderer. `steps`: a training step of each model by its stages, forward and backward, with parameters and
multiply-adds. `peers`: a training step and scoring of ours and of open_clip, with the same weights.
`growth`: making, opening, training on and auditing splits of more and more scenes, as exponents: with exponent e, twice
the scenes take 2^e times as long.

What is compared takes turns, so that other load slows all alike. Times are processor time of all threads; on a GPU,
elapsed time until the device has finished.
"""

import copy
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

from menagerie.envs.core.command_help import choose_command, read_options, running_command
from menagerie.envs.core.errors import UserError, run_command
from menagerie.envs.core.options import docstring
from menagerie.envs.core.validation import SIDE, Range, Several
from menagerie.envs.layouts import MOST
from menagerie.envs.scene import Scene
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world, random_in_layout, random_scenes
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.storage.folder import SplitFolder
from menagerie.models.recipe import Precision, Recipe
from menagerie.models.registry import check_scorer, spec_of
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.runs.machine import check_device_here, check_precision, processor, settle_torch
from menagerie.studies.runs.torchrun import check_joined

if TYPE_CHECKING:
    import torch

    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.scorer import Scorer
    from menagerie.models.training.feed import Batch

WARM_UP = 3  # rounds that aren't counted: they compile and load
SCORED = 256  # images, and as many captions, that peers score
STAGES = ("images", "texts", "comparison", "update")
FAST = 200  # repeats of a call that is too short to time


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


def renderers(config: Rendering, world: World) -> dict[str, Callable[[list[Scene]], object]]:
    """Return the renderers that can run here, by name; print why the others can't. Ours draws the scenes `FAST` times,
    into reused memory, as in a training loop."""
    from menagerie.envs.checks.direct import render_directly
    from menagerie.envs.checks.external_renderers import EXTERNAL_RENDERERS
    from menagerie.envs.render.renderer import Renderer

    ours, buffers = Renderer(world, config.resolution), {}

    def compose(scenes: list[Scene]) -> None:
        for _ in range(FAST):
            buffers[len(scenes)] = ours.render(scenes, buffers.get(len(scenes)))

    direct = partial(render_directly, resolution=config.resolution, world=world)
    draws: dict[str, Any] = {"menagerie": compose, "menagerie, direct": lambda scenes: [*map(direct, scenes)]}
    for name, method in (("pyrender", "picture"), ("tiny", "render")):
        try:
            draw = getattr(EXTERNAL_RENDERERS[name](config.resolution), method)
            draws[name] = lambda scenes, draw=draw: [*map(draw, scenes)]
        except UserError as error:
            print(f"left out: {error}")
    return draws


def scenes_to_draw(config: Rendering, world: World) -> list[Scene]:
    if not config.layout:
        if config.objects != 2:
            raise UserError(f"--objects {config.objects} needs a --layout: apart, rows or overlap")
        return random_scenes(world, config.scenes, seed=0, pairs=1.0)
    if len(world.animals) < config.objects:
        raise UserError(f"--objects {config.objects}: world {config.world!r} has only {len(world.animals)} animals")
    drawn = random_in_layout(world, config.layout, config.scenes * MOST, seed=0)
    return [scene for scene in drawn if len(scene.objects) == config.objects][: config.scenes]


def measure_rendering(config: Rendering) -> None:
    """Print the processor time an image of each renderer, and how many times ours it is."""
    world = load_world(config.world)
    scenes = scenes_to_draw(config, world)
    calls = {name: lambda number, draw=draw: draw(scenes) for name, draw in renderers(config, world).items()}
    spans = {name: [s / len(scenes) for s in its] for name, its in time_in_turns(calls, config.rounds).items()}
    spans["menagerie"] = [seconds / FAST for seconds in spans["menagerie"]]
    what = f"scenes of {config.objects} animals, {config.layout}" if config.layout else "pairs"
    print(f"{config.resolution} px, {config.scenes} {what}, {config.rounds} rounds, {processor()}")
    rows = {name: (1000 * median(its), ratio(its, spans["menagerie"])) for name, its in spans.items()}
    print_rows(("CPU-ms", "over ours"), rows)


def split_times(config: Growth, folder: Path, scenes: int) -> Iterator[tuple[str, float]]:
    """Yield the processor seconds to plan, make, open, compose, train on and audit a split of multi-object scenes."""
    from menagerie.generators.audit.run import audit
    from menagerie.generators.storage.dataset import SplitDataset
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
    """Print the seconds of each part by the number of scenes, and its exponent from the last two numbers."""
    settle_torch(threads=1)
    rows: dict[str, list[float]] = {}
    for scenes in config.scenes:
        with TemporaryDirectory() as folder:
            for name, value in split_times(config, Path(folder), scenes):
                rows.setdefault(name, []).append(value)
    print(f"processor seconds by number of scenes; {processor()}")
    if several := len(config.scenes) > 1:
        times = math.log(config.scenes[-1] / config.scenes[-2])
        rows = {name: [*its, math.log(its[-1] / its[-2]) / times] for name, its in rows.items()}
    print_rows((*config.scenes, *["exponent"] * several), rows)


def print_rows(header: Sequence[object], rows: Mapping[str, Sequence[float]]) -> None:
    print(f"{'':<32}" + "".join(f"{name:>12}" for name in header))
    for name, its in rows.items():
        print(f"{name:<32}" + "".join(f"{value:>12.4g}" for value in its))


@dataclass(frozen=True)
class Peers:
    """Time a training step and scoring, ours and open_clip's, in turns."""

    architecture: str = "mini"
    """Towers."""
    world: str = "eight"
    """World to draw from."""
    resolution: int = 64
    """Side of the square images, in pixels."""
    batch: Annotated[int, Range(2, 100_000)] = 64
    """Images per step."""
    rounds: Annotated[int, Range(1, 100_000)] = 30
    """Number of timed rounds; figures are medians over them."""
    store: Path = Path("store")
    """Folder of atlases and split files."""


@dataclass(frozen=True)
class Steps(Peers):
    """Time each stage of training steps, forward and backward; models take their steps in turns."""

    models: Annotated[tuple[str, ...], Several(1)] = ("clip", "oc-clip")
    """Scorers by name; ratios are to the first."""
    sizes: Literal["small", "paper"] = "small"
    """The scorers' own sizes: those for small towers, or their papers'."""
    precision: Precision = "float32"
    """float32, tf32 or bf16 (docs/training.md)."""
    device: str = "cpu"
    """cpu (one thread) or cuda."""


def time_in_turns(
    calls: dict[str, Callable[[int], object]], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """Return the seconds of each call in each round, which it is given as a number, without rounds that warm up."""
    spans: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + WARM_UP):
        for name, call in calls.items():
            start = clock()
            call(number)
            spans[name].append(clock() - start)
    return {name: its[WARM_UP:] for name, its in spans.items()}


def ratio(its: list[float], base: list[float]) -> float:
    """Return the median of ratios within a round, whose disturbances affect both alike."""
    return median(own / other for own, other in zip(its, base, strict=True))


def training_data(config: Peers) -> "SplitDataset":
    """Return the training subset of a split that trains on most pairs of a world, after rendering it."""
    from menagerie.generators.storage.dataset import SplitDataset

    recipe = BindingRecipe(world=config.world, pairs=0.8, views=4, test_views=1, test_scenes=20)
    store = SplitFolder(config.store, load_world(config.world), config.resolution)
    return SplitDataset(store.make(recipe), "train")


def new_scorer(model: str, config: Peers, data: "SplitDataset", small: bool = True) -> "Scorer":
    """Build a scorer for the data, with the sizes for small towers or its paper's."""
    import torch

    from menagerie.models.checkpoint import build_scorer
    from menagerie.models.towers.tokenizers import text_space

    torch.manual_seed(0)
    towers = TowerConfig(config.architecture, resolution=config.resolution)
    return build_scorer(model, towers, text_space(towers, data.texts()), dict(spec_of(model).small if small else {}))


def gpu_clock() -> float:
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()


def timed_step(
    scorer: "Scorer",
    optimizer: "torch.optim.Optimizer",
    batch: "Batch",
    recipe: Recipe,
    step: int,
    clock: Callable[[], float] = time.process_time,
) -> list[float]:
    """Take an optimiser step like `menagerie.models.training.loop.train_step`; returns the seconds of each of `STAGES`.
    Embeddings are detached from the step's graph, so that the backward pass of each stage is timed by itself."""
    import torch

    from menagerie.models.texts import leaves, map_tensors
    from menagerie.models.training import encoding, loop

    marks = [clock()]
    with encoding.matmul_precision(recipe.precision):
        embeddings = [scorer.encode_images(encoding.batch_pixels(scorer, batch))]
        marks.append(clock())
        embeddings.append(scorer.encode_texts(batch.texts))
        marks.append(clock())
        ends = [map_tensors(its, lambda t: t.detach().requires_grad_(t.requires_grad)) for its in embeddings]
        scorer.loss(*ends, batch.targets).backward()
        marks.append(clock())
        for embedding, end in zip(embeddings, ends, strict=True):
            pairs = zip(leaves(embedding), leaves(end), strict=True)
            known = [(part, its.grad) for part, its in pairs if isinstance(its, torch.Tensor) and its.grad is not None]
            torch.autograd.backward(*map(list, zip(*known, strict=True)))
            marks.append(clock())
    loop.set_rates(optimizer, step, recipe.steps, recipe.stable_steps)
    loop.update(scorer, optimizer)
    optimizer.zero_grad(set_to_none=True)
    marks.append(clock())
    images, texts, compared, back, last, updated = (after - before for before, after in pairwise(marks))
    return [images + back, texts + last, compared, updated]


def multiplications(scorer: "Scorer", images: "torch.Tensor", texts: Any) -> list[int]:
    """Count the multiply-adds of matrix products and convolutions, forward: of images, texts and their comparison."""
    from torch.utils.flop_counter import FlopCounterMode

    def counted(call: Callable[..., Any], *inputs: Any) -> tuple[Any, int]:
        with FlopCounterMode(display=False) as counter:
            return call(*inputs), counter.get_total_flops() // 2

    (image, first), (text, second) = counted(scorer.encode_images, images), counted(scorer.encode_texts, texts)
    return [first, second, counted(scorer.similarity, image, text)[1]]


def measure_steps(config: Steps) -> None:
    """Print for each model parameters, multiply-adds, median times of stages and steps, and a ratio to the first."""
    from menagerie.models.scorer import to_device
    from menagerie.models.training import encoding, loop
    from menagerie.models.training.feed import Feed

    for model in config.models:
        check_scorer(model)
    check_device_here(config.device)
    check_precision(config.precision, config.device)
    settle_torch(threads=1)
    data, clock = training_data(config), time.process_time if config.device == "cpu" else gpu_clock
    recipe = Recipe(steps=10_000, batch=config.batch, singles_share=0.5, precision=config.precision)
    stages: dict[str, list[list[float]]] = {model: [] for model in config.models}
    calls, rows = {}, {}
    for model in config.models:
        scorer = new_scorer(model, config, data, config.sizes == "small").to(config.device).train()
        optimizer = loop.build_optimizer(scorer, recipe)
        feed = Feed(data, scorer.reader, recipe, 0, spec_of(model).negatives)
        batch = to_device(feed[0], scorer.device)
        multiplied = multiplications(scorer, encoding.batch_pixels(scorer, batch), batch.texts)
        rows[model] = [sum(p.numel() for p in scorer.parameters()) / 1e6, *(n / 1e9 for n in multiplied)]

        def step(number: int, model: str = model, its: tuple = (scorer, optimizer), feed: Feed = feed) -> None:
            batch = to_device(feed[number], its[0].device)
            stages[model].append(timed_step(*its, batch, recipe, number, clock))

        calls[model] = step
    whole = time_in_turns(calls, config.rounds, clock)
    print(f"{config.architecture}, {config.resolution} px, batch {config.batch}, {config.precision}, {config.device}")
    print(f"{processor()}; 10^6 parameters, 10^9 multiply-adds forward, milliseconds (whole step: with preparing)")
    for model, its in stages.items():
        rows[model] += [1000 * median(times) for times in (*zip(*its[WARM_UP:], strict=True), whole[model])]
        rows[model].append(ratio(whole[model], whole[config.models[0]]))
    print_rows(("params", "images", "texts", "compare", *STAGES, "whole step", "ratio"), rows)


def open_clip_twin(scorer: "Scorer") -> "torch.nn.Module":
    """Return open_clip's own model with the weights of our CLIP."""
    from menagerie.models.towers.attention import as_in_torch

    peer = copy.deepcopy(scorer.model)
    as_in_torch(peer)
    peer.logit_scale.data.copy_(scorer.log_scale.data)
    return peer


def open_clip_step(
    model: "torch.nn.Module", optimizer: "torch.optim.Optimizer", images: "torch.Tensor", texts: "torch.Tensor"
) -> "torch.Tensor":
    """Take a step as open_clip's trainer does, with clipped gradients; returns the loss."""
    import open_clip
    import torch

    from menagerie.models.training.loop import LARGEST_GRADIENT

    optimizer.zero_grad()
    loss = open_clip.ClipLoss()(*model(images, texts)[:3])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), LARGEST_GRADIENT)
    optimizer.step()
    with torch.no_grad():
        model.logit_scale.clamp_(0, math.log(100))
    return loss.detach()


def training_peer(config: Peers, data: "SplitDataset") -> tuple[Callable[[int], object], ...]:
    """Return our training step and open_clip's, given a round's number: on images in uint8, and in floats."""
    import torch

    from menagerie.models.training import encoding, loop
    from menagerie.models.training.feed import Feed

    recipe = Recipe(steps=10_000, batch=config.batch)
    scorer = new_scorer("clip", config, data).train()
    peer, feed = open_clip_twin(scorer), Feed(data, scorer.reader, recipe, 0, spec_of("clip").negatives)
    batches = [feed[number] for number in range(config.rounds + WARM_UP)]
    floats = [encoding.batch_pixels(scorer, batch) for batch in batches]
    ours = loop.build_optimizer(scorer, recipe)
    theirs = torch.optim.AdamW(peer.parameters(), recipe.learning_rate, recipe.betas, foreach=True)
    return (
        lambda number: loop.train_step(scorer, ours, batches[number], recipe, 0, number),
        lambda number: open_clip_step(peer, theirs, floats[number], batches[number].texts),
    )


def scoring_peer(config: Peers, data: "SplitDataset") -> tuple[Callable[[int], object], ...]:
    """Return ours and open_clip's scores of up to `SCORED` images with as many captions, in blocks of one size."""
    import torch

    from menagerie.generators.benchmarks.matrix import Pool
    from menagerie.models.evaluation.scoring import BLOCK, TEXTS, encode_blocks, score_pool

    scorer = new_scorer("clip", config, data)
    peer = open_clip_twin(scorer).eval()
    numbers = tuple(range(min(SCORED, len(data))))
    captions, pixels = data.captions(numbers, numbers), data.images(numbers)
    pool = Pool("", (), numbers, tuple((caption,) for caption in captions), ())
    encode = partial(encode_blocks, scorer, lambda block: pixels[list(block)])

    @torch.no_grad()
    def their_scores(number: int) -> object:
        blocks = torch.split(scorer.pixel_scale(pixels), BLOCK)
        images = torch.cat([peer.encode_image(block, normalize=True) for block in blocks])
        tokens = scorer.reader.tokenizer([text for text, _ in captions], scorer.reader.context)
        texts = torch.cat([peer.encode_text(block, normalize=True) for block in torch.split(tokens, TEXTS)])
        return (images @ texts.T).numpy()

    return lambda number: score_pool(scorer, pool, encode), their_scores


def measure_peers(config: Peers) -> None:
    """Print processor times of ours and of open_clip, and the median of their ratios."""
    settle_torch(threads=1)
    data = training_data(config)
    print(f"{config.architecture}, {config.resolution} px, batch {config.batch}, 1 thread, {processor()}; CPU-ms")
    rows = {}
    for name, pair in (("train CLIP, a step", training_peer), (f"score {SCORED} images", scoring_peer)):
        ours, theirs = time_in_turns(dict(zip("ab", pair(config, data), strict=True)), config.rounds).values()
        rows[name] = (1000 * median(ours), 1000 * median(theirs), ratio(ours, theirs))
    print_rows(("ours", "open_clip", "ratio"), rows)


# By name: the options of a measurement, and the function that prints it.
MEASUREMENTS: dict[str, tuple[type, Callable[[Any], None]]] = {
    "rendering": (Rendering, measure_rendering),
    "steps": (Steps, measure_steps),
    "peers": (Peers, measure_peers),
    "growth": (Growth, measure_growth),
}


def main() -> int:
    check_joined()
    command = running_command()
    name = choose_command(command, docstring(sys.modules[__name__]), tuple(MEASUREMENTS))
    options, measure = MEASUREMENTS[name]
    measure(read_options(options, sys.argv[2:], f"{command} {name}", docstring(options)))
    return 0


if __name__ == "__main__":
    run_command(main)

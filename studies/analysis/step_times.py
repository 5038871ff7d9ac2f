"""Times training steps and scoring by their parts, beside open_clip's (`studies/throughput.py steps`, `peers`)."""

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from menagerie.envs.core.files import check_option_folder
from menagerie.envs.core.validation import Range, Several
from menagerie.envs.worlds import load_world
from menagerie.models.recipe import Precision, Recipe
from menagerie.models.registry import check_scorer, spec_of
from menagerie.studies.runs.machine import check_device_here, check_precision, processor, settle_torch

if TYPE_CHECKING:
    import torch

    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.scorer import Scorer
    from menagerie.models.texts import Tensors
    from menagerie.models.training.feed import Batch

WARM_UP = 3  # rounds that aren't counted: they compile and load
SCORED = 256  # images, and as many captions, that peers score
STAGES = ("images", "texts", "comparison", "update")


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
    from rich.console import Console
    from rich.progress import track

    spans: dict[str, list[float]] = {name: [] for name in calls}
    for number in track(range(rounds + WARM_UP), "rounds", console=Console(stderr=True)):
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
    from menagerie.generators.splits.binding import BindingRecipe
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.generators.storage.folder import SplitFolder
    from menagerie.models.towers.build import check_towers
    from menagerie.models.towers.config import TowerConfig

    check_option_folder("--store", config.store)
    check_towers(TowerConfig(config.architecture, resolution=config.resolution))
    recipe = BindingRecipe(world=config.world, pairs=0.8, views=4, test_views=1, test_scenes=20)
    store = SplitFolder(config.store, load_world(config.world), config.resolution)
    return SplitDataset(store.make(recipe), "train")


def new_scorer(model: str, config: Peers, data: "SplitDataset", small: bool = True) -> "Scorer":
    """Build a scorer for the data, with the sizes for small towers or its paper's."""
    import torch

    from menagerie.models.checkpoint import build_scorer
    from menagerie.models.towers.config import TowerConfig
    from menagerie.models.towers.tokenizers import text_space

    torch.manual_seed(0)
    towers = TowerConfig(config.architecture, resolution=config.resolution)
    return build_scorer(model, towers, text_space(towers, data.texts()), dict(spec_of(model).small if small else {}))


def clock_of(device: str) -> Callable[[], float]:
    """Return a clock in seconds: processor time on a CPU; on a GPU elapsed time, after waiting for the device."""
    import torch

    def gpu_clock() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return time.process_time if device == "cpu" else gpu_clock


def detach_embedding(embedding: "Tensors") -> "Tensors":
    """Detach an embedding from its graph, so that it collects a gradient of its own."""
    from menagerie.models.texts import map_tensors

    return map_tensors(embedding, lambda part: part.detach().requires_grad_() if part.requires_grad else part)


def continue_backward(embedding: "Tensors", detached: "Tensors") -> None:
    """Run the backward pass through an embedding, from the gradient of its detached copy."""
    import torch

    from menagerie.models.texts import leaves

    pairs = list(zip(leaves(embedding), leaves(detached), strict=True))
    ends = [(part, end.grad) for part, end in pairs if isinstance(end, torch.Tensor) and end.grad is not None]
    torch.autograd.backward([part for part, _ in ends], [gradient for _, gradient in ends])


def timed_step(
    scorer: "Scorer",
    optimizer: "torch.optim.Optimizer",
    batch: "Batch",
    recipe: Recipe,
    step: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Take an optimiser step like `menagerie.models.training.loop.train_step`; returns the seconds of each stage.

    Embeddings are detached from the step's graph, so that the backward pass of each stage is timed by itself.
    """
    from menagerie.models.training.encoding import batch_pixels, matmul_precision
    from menagerie.models.training.loop import set_rates, update

    marks = [clock()]
    with matmul_precision(recipe.precision):
        images = scorer.encode_images(batch_pixels(scorer, batch))
        marks.append(clock())
        texts = scorer.encode_texts(batch.texts)
        marks.append(clock())
        ends = detach_embedding(images), detach_embedding(texts)
        scorer.loss(*ends, batch.targets).backward()
        marks.append(clock())
        continue_backward(images, ends[0])
        marks.append(clock())
        continue_backward(texts, ends[1])
        marks.append(clock())
    set_rates(optimizer, step, recipe.steps, recipe.stable_steps)
    update(scorer, optimizer)
    optimizer.zero_grad(set_to_none=True)
    marks.append(clock())
    first, second, compared, back, last, updated = (after - before for before, after in pairwise(marks))
    return dict(zip(STAGES, (first + back, second + last, compared, updated), strict=True))


def multiplications(scorer: "Scorer", images: "torch.Tensor", texts: Any) -> tuple[int, int, int]:
    """Count the multiply-adds of matrix products and convolutions, forward: of images, texts and their comparison."""
    from torch.utils.flop_counter import FlopCounterMode

    found: list[Any] = []
    calls = (
        lambda: scorer.encode_images(images),
        lambda: scorer.encode_texts(texts),
        lambda: scorer.similarity(*found),
    )
    counts = []
    for call in calls:
        with FlopCounterMode(display=False) as counter:
            result = call()
        found.append(result)
        counts.append(counter.get_total_flops() // 2)
    return tuple(counts)


def measure_steps(config: Steps) -> None:
    """Print a row for each model: parameters, multiply-adds, median times of its stages and whole steps, and a ratio
    to the first model."""
    from menagerie.models.scorer import to_device
    from menagerie.models.training.encoding import batch_pixels
    from menagerie.models.training.feed import Feed
    from menagerie.models.training.loop import build_optimizer

    for model in config.models:
        check_scorer(model)
    check_device_here(config.device)
    check_precision(config.precision, config.device)
    settle_torch(threads=1)
    data, clock = training_data(config), clock_of(config.device)
    recipe = Recipe(steps=10_000, batch=config.batch, singles_share=0.5, precision=config.precision)
    stages: dict[str, list[dict[str, float]]] = {model: [] for model in config.models}
    calls, counts = {}, {}
    for model in config.models:
        scorer = new_scorer(model, config, data, config.sizes == "small").to(config.device).train()
        optimizer, feed = (
            build_optimizer(scorer, recipe),
            Feed(data, scorer.reader, recipe, 0, spec_of(model).negatives),
        )
        batch = to_device(feed[0], scorer.device)
        weights = sum(weight.numel() for weight in scorer.parameters())
        counts[model] = (
            weights / 1e6,
            *(n / 1e9 for n in multiplications(scorer, batch_pixels(scorer, batch), batch.texts)),
        )

        def step(number: int, model: str = model, its: tuple = (scorer, optimizer), feed: Feed = feed) -> None:
            batch = to_device(feed[number], its[0].device)
            stages[model].append(timed_step(*its, batch, recipe, number, clock))

        calls[model] = step
    whole = time_in_turns(calls, config.rounds, clock)
    print(f"{config.architecture}, {config.resolution} px, batch {config.batch}, {config.precision}, {config.device}")
    print(
        f"{processor()}; parameters in millions, 10^9 multiply-adds forward, milliseconds (with preparing: whole step)"
    )
    names = ("params", "images", "texts", "compare", *STAGES, "whole step", "ratio")
    print(f"{'':<16}" + "".join(f"{name:>11}" for name in names))
    for model, its in stages.items():
        cells = [1000 * median(times[name] for times in its[WARM_UP:]) for name in STAGES]
        cells += [1000 * median(whole[model]), ratio(whole[model], whole[config.models[0]])]
        print(f"{model:<16}" + "".join(f"{cell:>11.3g}" for cell in (*counts[model], *cells)))


def open_clip_twin(scorer: "Scorer") -> "torch.nn.Module":
    """Return open_clip's own model with the weights of our CLIP."""
    import torch

    from menagerie.models.towers.attention import as_in_torch

    peer = copy.deepcopy(scorer.model)
    as_in_torch(peer)
    with torch.no_grad():
        peer.logit_scale.copy_(scorer.log_scale)
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


def open_clip_optimizer(model: "torch.nn.Module", recipe: Recipe) -> "torch.optim.Optimizer":
    """Make AdamW as open_clip's trainer does: gains and biases don't decay."""
    import torch

    groups = [
        {"params": [p for p in model.parameters() if (p.ndim >= 2) == matrices], "weight_decay": decay}
        for matrices, decay in ((True, recipe.weight_decay), (False, 0.0))
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas, foreach=True)


class Peer(NamedTuple):
    """The same work by ours and by open_clip; both are given the round's number."""

    name: str
    ours: Callable[[int], object]
    theirs: Callable[[int], object]


def training_peer(config: Peers, data: "SplitDataset") -> Peer:
    """A training step from a prepared batch: of images in uint8 for ours, of floats for open_clip, as loaders give
    them."""
    from menagerie.models.training.encoding import batch_pixels
    from menagerie.models.training.feed import Feed
    from menagerie.models.training.loop import build_optimizer, train_step

    recipe = Recipe(steps=10_000, batch=config.batch)
    scorer = new_scorer("clip", config, data).train()
    peer, feed = open_clip_twin(scorer), Feed(data, scorer.reader, recipe, 0, spec_of("clip").negatives)
    batches = [feed[number] for number in range(config.rounds + WARM_UP)]
    floats = [batch_pixels(scorer, batch) for batch in batches]
    ours, theirs = build_optimizer(scorer, recipe), open_clip_optimizer(peer, recipe)
    return Peer(
        "train CLIP, a step",
        lambda number: train_step(scorer, ours, batches[number], recipe, 0, number),
        lambda number: open_clip_step(peer, theirs, floats[number], batches[number].texts),
    )


def scoring_peer(config: Peers, data: "SplitDataset") -> Peer:
    """Scores of up to `SCORED` images with as many captions, all with all; both encode blocks of one size."""
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

    name = f"score {len(numbers)} images, {len(numbers)} texts"
    return Peer(name, lambda number: score_pool(scorer, pool, encode), their_scores)


def measure_peers(config: Peers) -> None:
    """Print processor times of ours and of open_clip, and the median of their ratios."""
    settle_torch(threads=1)
    data = training_data(config)
    print(f"{config.architecture}, {config.resolution} px, batch {config.batch}, 1 thread, {processor()}; CPU-ms")
    print(f"{'':<30}{'ours':>10}{'open_clip':>12}{'ratio':>8}")
    for peer in (training_peer(config, data), scoring_peer(config, data)):
        ours, theirs = time_in_turns({"ours": peer.ours, "theirs": peer.theirs}, config.rounds).values()
        print(f"{peer.name:<30}{1000 * median(ours):>10.2f}{1000 * median(theirs):>12.2f}{ratio(ours, theirs):>8.3f}")

"""Times a training step part by part (`studies/throughput.py training`).

On a CPU, times are processor time. On a GPU they are elapsed time until the device has finished; also printed are steps
a second without preparation of batches, the peak memory, floating-point operations a second (FlopCounterMode), and
their share of the peak in the card's data sheet for this precision.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Literal

from menagerie.envs.core.files import check_option_folder
from menagerie.envs.core.validation import Range, Several
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.models.recipe import Precision, Recipe
from menagerie.models.registry import check_scorer
from menagerie.studies.runs.machine import check_device_here, check_precision, settle_torch

if TYPE_CHECKING:
    import torch

    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.training.feed import Batch

WARM_UP = 3  # repeats that aren't counted
TARGET_BATCHES = (64, 256, 1024)
# Dense operations a second by a word in the card's name (NVIDIA's data sheets of A100, H100 SXM and H200).
PEAKS: dict[str, dict[str, float]] = {
    "A100": {"float32": 19.5e12, "tf32": 156e12, "bf16": 312e12},
    "H100 80GB": {"float32": 67e12, "tf32": 494.5e12, "bf16": 989.5e12},
    "H200": {"float32": 67e12, "tf32": 494.5e12, "bf16": 989.5e12},
}


@dataclass(frozen=True)
class Timed:
    """Options of timed training steps."""

    architecture: str = "mini"
    """Towers."""
    world: str = "eight"
    """World to draw from."""
    resolution: int = 64
    """Side of the square images, in pixels."""
    batch: Annotated[int, Range(2, 100_000)] = 64
    """Images per step."""
    repeats: Annotated[int, Range(1, 100_000)] = 30
    """Number of timed steps; figures are medians over them."""
    store: Path = Path("store")
    """Folder of atlases and split files."""

    def check(self) -> None:
        """Raise for a folder or towers that can't be used."""
        from menagerie.models.towers.build import check_towers
        from menagerie.models.towers.config import TowerConfig

        check_option_folder("--store", self.store)
        check_towers(TowerConfig(self.architecture, resolution=self.resolution))


@dataclass(frozen=True)
class StepTiming(Timed):
    """Time the parts of a training step of every model, and the search for false negatives in a batch's texts."""

    models: Annotated[tuple[str, ...], Several(1)] = ("clip", "oc-clip")
    """Scorers by name."""
    sizes: Literal["small", "paper"] = "small"
    """The scorers' own sizes: those for small towers, or their papers'."""
    precision: Annotated[tuple[Precision, ...], Several(1)] = ("float32",)
    """Precisions, one after another for each model: float32, tf32, bf16 (docs/training.md)."""
    accumulate: Annotated[int, Range(1, 100_000)] = 1
    """Parts in which a batch's images are encoded."""
    grad_checkpointing: bool = False
    """Keep only the input of each transformer block in a step."""
    compile: bool = False
    """Compile the loss of a step and its gradient with torch.compile, before what is timed."""
    device: str = "cpu"
    """cpu or cuda."""


def training_data(config: Timed) -> "SplitDataset":
    """Return the training subset of a split that trains on most pairs of a world, after rendering it."""
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.generators.storage.folder import SplitFolder

    recipe = BindingRecipe(world=config.world, pairs=0.8, views=4, test_views=1, test_scenes=20)
    store = SplitFolder(config.store, load_world(config.world), config.resolution)
    return SplitDataset(store.make(recipe), "train")


def clock_of(device: "torch.device") -> Callable[[], float]:
    """Return a clock in seconds: processor time on a CPU; on a GPU elapsed time, after waiting for the device."""
    import torch

    def gpu_clock() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return gpu_clock if device.type == "cuda" else time.process_time


def milliseconds(call: Callable[[int], object], repeats: int, clock: Callable[[], float] = time.process_time) -> float:
    """Return the median time (ms) of `call(number)`, after calls that warm up."""
    spans = []
    for number in range(-WARM_UP, repeats):
        start = clock()
        call(number + WARM_UP)
        spans.append(clock() - start)
    return 1000 * median(spans[WARM_UP:])


def step_recipe(config: StepTiming, precision: Precision) -> Recipe:
    """Return the recipe of the steps; raises for a precision that the device doesn't have."""
    check_precision(precision, config.device)
    steps = {"precision": precision, "accumulate": config.accumulate, "compile": config.compile}
    return Recipe(steps=10_000, batch=config.batch, singles_share=0.5, **steps)


def step_parts(config: StepTiming, model: str, recipe: Recipe, data: "SplitDataset") -> dict[str, float]:
    """Return the milliseconds of each part of a model's step, and further figures on a GPU. `prepare` always runs on
    the CPU."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from menagerie.models.checkpoint import build_scorer
    from menagerie.models.registry import spec_of
    from menagerie.models.scorer import to_device
    from menagerie.models.texts import map_tensors
    from menagerie.models.towers.config import TowerConfig
    from menagerie.models.towers.tokenizers import text_space
    from menagerie.models.training.batch_loss import step_loss
    from menagerie.models.training.encoding import checkpoint_blocks, matmul_precision
    from menagerie.models.training.feed import Feed
    from menagerie.models.training.loop import build_optimizer, train_step

    towers, spec = TowerConfig(config.architecture, resolution=config.resolution), spec_of(model)
    torch.manual_seed(0)
    options = dict(spec.small if config.sizes == "small" else {})
    scorer = build_scorer(model, towers, text_space(towers, data.texts()), options).to(config.device).train()
    if config.grad_checkpointing:
        checkpoint_blocks(scorer)
    device, on_gpu = scorer.device, config.device != "cpu"
    optimizer, feed = build_optimizer(scorer, recipe), Feed(data, scorer.reader, recipe, 0, spec.negatives)
    parts = {"prepare": milliseconds(feed.__getitem__, config.repeats)}
    batches = [feed[number] for number in range(config.repeats + WARM_UP)]
    if on_gpu:  # as loaders hand them over
        batches = [map_tensors(batch, torch.Tensor.pin_memory) for batch in batches]
        torch.cuda.reset_peak_memory_stats(device)
    clock = clock_of(device)

    def batch(number: int) -> "Batch":
        return to_device(batches[number], device, non_blocking=True)

    def forward(number: int) -> None:
        with matmul_precision(recipe.precision):
            step_loss(scorer, batch(number), recipe)

    def step(number: int) -> "torch.Tensor":
        return train_step(scorer, optimizer, batch(number), recipe, 0, number)

    parts["forward"] = milliseconds(forward, config.repeats, clock)
    alone = milliseconds(step, config.repeats, clock)
    parts["whole step"] = parts["prepare"] + alone
    if on_gpu:
        parts["steps/s"] = 1000 / alone
        parts["GiB"] = torch.cuda.max_memory_allocated(device) / 2**30
        with FlopCounterMode(display=False) as counter:
            step(0)
        speed = counter.get_total_flops() * parts["steps/s"]
        name = torch.cuda.get_device_name(device)
        peak = next((peaks[recipe.precision] for card, peaks in PEAKS.items() if card in name), math.nan)
        parts |= {"TFLOP/s": speed / 1e12, "of peak, %": 100 * speed / peak}
    return parts


def target_times(config: StepTiming, data: "SplitDataset") -> Iterator[tuple[int, float]]:
    """Yield numbers of texts in a batch, each with the CPU milliseconds to find which texts are true of which
    images."""
    from menagerie.models.training.sampling import with_singles
    from menagerie.models.training.targets import Claims, targets_of

    single, known = data.strata["single_object"], Claims()
    for batch in TARGET_BATCHES:
        sampler = with_singles(single, batch, 0.5, seed=0)
        texts = [data.captions(indices := sampler.indices(n), indices) for n in range(config.repeats + WARM_UP)]

        def compare(number: int, texts: list = texts, batch: int = batch) -> None:
            targets_of(texts[number], batch, complete=True, mask=True, known=known)

        yield batch, milliseconds(compare, config.repeats)


def measure_training(config: StepTiming) -> int:
    import torch

    from menagerie.studies.runs.machine import processor

    config.check()
    for model in config.models:
        check_scorer(model)
    check_device_here(config.device)
    recipes = [step_recipe(config, precision) for precision in config.precision]
    settle_torch(threads=1)
    data = training_data(config)
    names = ["prepare", "forward", "whole step"]
    place, unit = f"1 thread, {processor()}", "CPU-ms"
    if config.device != "cpu":
        place, unit = torch.cuda.get_device_name(config.device), "ms"
        names += ["steps/s", "GiB", "TFLOP/s", "of peak, %"]
    print(f"{config.architecture}, {config.resolution} px, batch {config.batch}, {place}; {unit}")
    print(f"{'':<24}" + "".join(f"{name:>12}" for name in names))
    for model in config.models:
        for recipe in recipes:
            print(f"{model:<16}{recipe.precision:<8}{figures_line(config, model, recipe, data)}", flush=True)
    for batch, cost in target_times(config, data):
        print(f"which texts are true of which images, batch {batch:>5}: {cost:.2f}")
    return 0


def figures_line(config: StepTiming, model: str, recipe: Recipe, data: "SplitDataset") -> str:
    """Return the figures of a model's row as text, or that the device has too little memory."""
    import torch

    try:
        parts = step_parts(config, model, recipe, data)
    except torch.cuda.OutOfMemoryError:
        return "  more memory than the device has"
    return "".join(f"{value:>12.1f}" for value in parts.values())

"""What a training step costs, part by part, in processor time: for `studies/throughput.py training`."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

from envs.common.errors import UserError
from envs.common.files import check_place
from envs.common.ranges import Range
from envs.worlds import load_world
from generators.splits.binding import BindingRecipe
from models.recipe import Recipe
from models.registry import check_scorer

if TYPE_CHECKING:
    import torch

    from generators.storage.dataset import SplitDataset

WARM_UP = 3  # repeats that don't count
TARGET_BATCHES = (64, 256, 1024)


@dataclass(frozen=True)
class Training:
    """Time the parts of a training step of every model, and the comparison of a batch's texts."""

    models: tuple[str, ...] = ("clip", "oc-clip")
    """Scorers by name, in their sizes for small towers."""
    architecture: str = "mini"
    """Towers."""
    world: str = "eight"
    """World to draw from."""
    resolution: int = 64
    """Side of the square images, in pixels."""
    batch: Annotated[int, Range(2, 100_000)] = 64
    """Images of a step."""
    repeats: Annotated[int, Range(1, 100_000)] = 30
    """Steps; the figures are medians over them."""
    store: Path = Path("store")
    """Folder of the image stores."""


def training_data(config: Training) -> "SplitDataset":
    """A split of the world with most of its pairs, rendered where it is missing."""
    from generators.storage.dataset import SplitDataset
    from generators.storage.image_store import ImageStore
    from generators.storage.split_file import make_split

    recipe = BindingRecipe(world=config.world, pairs=0.8, views=4, test_views=1, test_scenes=20)
    store = ImageStore(config.store, load_world(config.world), config.resolution)
    store.add(recipe.scenes_to_render())
    return SplitDataset(make_split(store, recipe), "train")


def milliseconds(call: Callable[[int], object], repeats: int) -> float:
    """Median processor time of `call(number)`."""
    spans = []
    for number in range(-WARM_UP, repeats):
        start = time.process_time()
        call(number + WARM_UP)
        spans.append(time.process_time() - start)
    return 1000 * median(spans[WARM_UP:])


def step_parts(config: Training, model: str, data: "SplitDataset") -> dict[str, float]:
    """CPU-ms of each part of a model's step, and of the whole."""
    import torch

    from models.checkpoint import build_scorer
    from models.registry import spec_of
    from models.towers.config import TowerConfig
    from models.towers.tokenizers import text_space
    from models.training.feed import Feed
    from models.training.loop import batch_loss, train_step
    from models.training.optimizer import build_optimizer

    towers = TowerConfig(config.architecture, resolution=config.resolution)
    torch.manual_seed(0)
    scorer = build_scorer(model, towers, text_space(towers, data.texts()), dict(spec_of(model).small)).train()
    recipe = Recipe(steps=10_000, batch=config.batch, singles_share=0.5)
    optimizer, feed = build_optimizer(scorer, recipe), Feed(data, scorer.reader, recipe, 0, spec_of(model).negatives)
    parts = {"prepare": milliseconds(feed.__getitem__, config.repeats)}
    batches = [feed[number] for number in range(config.repeats + WARM_UP)]
    parts["forward"] = milliseconds(lambda number: batch_loss(scorer, batches[number], recipe), config.repeats)

    def step(number: int) -> "torch.Tensor":
        return train_step(scorer, optimizer, batches[number], recipe, 0, number)

    parts["whole step"] = parts["prepare"] + milliseconds(step, config.repeats)
    return parts


def target_times(config: Training, data: "SplitDataset") -> Iterator[tuple[int, float]]:
    """CPU-ms to compare all texts of a batch, by its size."""
    from models.training.sampling import BatchSampler
    from models.training.targets import Claims, targets_of

    single, known = data.strata["single_object"], Claims()
    for batch in TARGET_BATCHES:
        sampler = BatchSampler(single, batch, 0.5, seed=0)
        texts = [data.captions(indices := sampler.indices(n), indices) for n in range(config.repeats + WARM_UP)]

        def compare(number: int, texts: list = texts, batch: int = batch) -> None:
            targets_of(texts[number], batch, complete=True, mask=True, known=known)

        yield batch, milliseconds(compare, config.repeats)


def training(config: Training) -> int:
    """Print both tables."""
    import torch

    from models.towers.build import check_towers
    from models.towers.config import TowerConfig
    from studies.runs.folder import processor

    if not config.models:
        raise UserError("--models needs one or more scorers, got none")
    check_place("--store", config.store)
    for model in config.models:
        check_scorer(model)
    check_towers(TowerConfig(config.architecture, resolution=config.resolution))
    torch.set_num_threads(1)
    data = training_data(config)
    print(f"{config.architecture}, {config.resolution} px, batch {config.batch}, 1 thread, {processor()}; CPU-ms")
    print(f"{'':<12}{'prepare':>10}{'forward':>10}{'whole step':>12}")
    for model in config.models:
        parts = step_parts(config, model, data)
        print(f"{model:<12}{parts['prepare']:>10.1f}{parts['forward']:>10.1f}{parts['whole step']:>12.1f}")
    for batch, cost in target_times(config, data):
        print(f"which texts are right of which images, batch {batch:>5}: {cost:.2f}")
    return 0

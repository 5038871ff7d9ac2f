"""Measures how the time to make, train on and audit a split grows with its images, and a training step with its batch
(`studies/throughput.py growth`)."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from menagerie.envs.worlds import load_world
from menagerie.studies.analysis.growth_parts import Growth, Peak, seconds
from menagerie.studies.analysis.step_timing import StepTiming, step_parts, step_recipe, training_data
from menagerie.studies.runs.machine import settle_torch

if TYPE_CHECKING:
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.scorer import Scorer

MODELS, STEPS = ("clip", "oc-clip"), 5
BATCH = 64


def split_growth(config: Growth, folder: Path, amount: int) -> Iterator[tuple[str, float]]:
    """Time planning, making, opening, composing, training on and auditing a split of multi-object scenes."""
    from menagerie.generators.audit.run import audit
    from menagerie.generators.splits.multi_object import MultiObjectRecipe
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.generators.storage.folder import SplitFolder
    from menagerie.generators.storage.split_file import read_split

    few = {"objects": (2, 3), "test_objects": (2, 3), "searches": (), "triplets": ()}
    recipe = MultiObjectRecipe(world=config.world, train_scenes=amount, test_scenes=100, views=4, test_views=1, **few)
    store = SplitFolder(folder, load_world(config.world), config.resolution)
    planned, scenes = seconds(recipe.subsets)
    yield "plan, s", planned
    store.prepare([scene for its in scenes.values() for scene in its], store.renderer())
    made, path = seconds(lambda: store.make(recipe))
    yield "make, s", made
    opened, split = seconds(lambda: read_split(path))
    yield "open it, s", opened
    peak = Peak()
    loaded, data = seconds(lambda: SplitDataset(split, "train", preload=True))
    yield "compose its images, s", loaded
    yield "... memory over that of the images", peak.more() * 2**20 / data.images([0])[0].nbytes / len(data)
    yield "train on it once, s", pass_seconds(data)
    yield "audit, s", seconds(lambda: audit(path))[0]


def batch_growth(config: Growth, folder: Path, amount: int) -> Iterator[tuple[str, float]]:
    """Time a training step of CLIP and OC-CLIP with a batch of `amount` images."""
    timed = StepTiming(world=config.world, resolution=config.resolution, batch=amount, repeats=STEPS, store=folder)
    settle_torch(threads=1)
    data = training_data(timed)
    for model in MODELS:
        parts = step_parts(timed, model, step_recipe(timed, "float32"), data)
        yield f"a step of {model}, ms", parts["whole step"]


def pass_seconds(data: "SplitDataset") -> float:
    """Train a small CLIP on each image about once; returns the processor time in seconds."""
    from menagerie.models.recipe import Recipe
    from menagerie.models.training.loop import train_scorer

    settle_torch(threads=1)
    recipe = Recipe(steps=len(data) // BATCH, batch=BATCH, warmup=1)
    return seconds(lambda: train_scorer(small_clip(data), data, recipe, 0))[0]


def small_clip(data: "SplitDataset") -> "Scorer":
    """Build a CLIP with the smallest towers, for the images and texts of a split."""
    from menagerie.models.checkpoint import build_scorer
    from menagerie.models.towers.config import TowerConfig
    from menagerie.models.towers.tokenizers import text_space

    towers = TowerConfig("nano", resolution=data.split.resolution)
    return build_scorer("clip", towers, text_space(towers, data.texts()), {})

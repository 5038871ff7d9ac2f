"""Measures how training grows with the batch and with the number of images, for `studies/throughput.py growth`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from menagerie.studies.analysis.growth_parts import Growth, seconds
from menagerie.studies.analysis.step_timing import Training, recipe_of, step_parts, training_data
from menagerie.studies.runs.machine import settle_torch

if TYPE_CHECKING:
    from menagerie.generators.storage.dataset import SplitDataset

MODELS, STEPS = ("clip", "oc-clip"), 5
BATCH = 64


def batch_growth(config: Growth, folder: Path, amount: int) -> Iterator[tuple[str, float]]:
    """Measure a training step of CLIP and OC-CLIP at a batch of `amount` images."""
    timed = Training(world=config.world, resolution=config.resolution, batch=amount, repeats=STEPS, store=folder)
    settle_torch(threads=1)
    data = training_data(timed)
    for model in MODELS:
        parts = step_parts(timed, model, recipe_of(timed, "float32"), data)
        yield f"a step of {model}, ms", parts["whole step"]


def pass_seconds(data: "SplitDataset", resolution: int) -> float:
    """Train a small CLIP on each image about once; returns the processor time in seconds."""
    from menagerie.models.checkpoint import build_scorer
    from menagerie.models.recipe import Recipe
    from menagerie.models.towers.config import TowerConfig
    from menagerie.models.towers.tokenizers import text_space
    from menagerie.models.training.loop import train

    settle_torch(threads=1)
    towers, recipe = TowerConfig("nano", resolution=resolution), Recipe(steps=len(data) // BATCH, batch=BATCH, warmup=1)

    def trained() -> None:
        train(build_scorer("clip", towers, text_space(towers, data.texts()), {}), data, recipe, 0)

    return seconds(trained)[0]

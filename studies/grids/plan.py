"""What a grid would take on this machine: `--dry-run`, from a few scenes and steps that are made and not kept."""

import time
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from menagerie.envs.worlds import load_world
from menagerie.generators.captioned import Captioned, Indices, all_texts
from menagerie.generators.captions.hard_negatives.false_captions import TEXT_NEGATIVES
from menagerie.generators.captions.templates import Caption
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.estimate import estimate
from menagerie.generators.storage.image_store import ImageStore
from menagerie.models.checkpoint import build_scorer
from menagerie.models.scorer import moved
from menagerie.models.towers.tokenizers import text_space
from menagerie.models.training.feed import Feed, single_steps
from menagerie.models.training.loop import build_optimizer, train_step
from menagerie.studies.grids.cells import cells
from menagerie.studies.grids.grid import Grid, cores, splits, workers
from menagerie.studies.runs.cell import Cell

WARM_UP, STEPS = 3, 10
# Of a cell beside its steps: opening the split, tests and checkpoint; one measured cell of the laptop grid.
REST_SECONDS = 10.0
# Of a study beside its cells: loading torch, the contract of scorers, reports; measured once.
STUDY_SECONDS = 10.0


class Noise(Captioned):
    """The captions of training scenes with images of noise: what a step costs doesn't depend on their content."""

    complete_captions = True
    text_negatives = TEXT_NEGATIVES

    def __init__(self, recipe: SplitRecipe, resolution: int) -> None:
        self.name, self.side = "a sample", resolution
        scenes = recipe.subsets()["train"]
        chosen = scenes[:: max(1, len(scenes) // 500)]
        self.rows = [recipe.texts("train", scene) for scene in chosen]
        self.strata = {"single_object": np.array([len(scene.things) == 1 for scene in chosen])}

    def __len__(self) -> int:
        return len(self.rows)

    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        return torch.randint(256, (len(indices), 3, self.side, self.side), dtype=torch.uint8)

    def partner_images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        return self.images(indices)

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        return [self.rows[i][0] for i in indices]

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        """The hard negatives of the scenes; where negatives are drawn at random, captions of other scenes."""
        return [self.rows[i][1] if kind == "swap" else self.rows[i - 1][0] for i in indices]

    def partner_items(self, indices: Indices) -> Int64[np.ndarray, " n"]:
        """Each image is its own partner: no other image would take longer."""
        return np.asarray(indices, np.int64)

    def texts(self) -> Iterator[str]:
        """All texts of the sample."""
        yield from all_texts(text for row in self.rows for text in row if text)


def plan(grid: Grid) -> None:
    """Print what is to be rendered and trained, and how long both take."""
    here = cells(grid, "")
    rendering = 0.0
    if not grid.split:
        store = ImageStore(grid.store, load_world(grid.world), grid.resolution)
        scenes = {scene for recipe in splits(grid) for scene in recipe.scenes_to_render()}
        cost = estimate(store, sorted(scenes), cores(grid))
        rendering = cost.seconds
        print(f"{len(scenes)} scenes, {cost.scenes} of them to render: {cost.megabytes:.0f} MB, {shown(rendering)}")
    print(f"{len(here)} cells: {len(grid.models)} models, {len(grid.places)} places, {grid.seeds} seeds")
    torch.set_num_threads(grid.threads)
    data, training = training_sample(grid), 0.0
    for model in grid.models:
        of_model = [cell for cell in here if cell.model == model]
        steps, seconds = steps_of(of_model), step_seconds(of_model[0], data)
        training += steps * seconds + REST_SECONDS * len(of_model)
        print(f"{model}: {len(of_model)} cells, {steps} steps, {1000 * seconds:.0f} ms each")
    at_once = min(workers(grid), len(here))
    total = STUDY_SECONDS + rendering + training / at_once
    print(f"about {shown(total)} in all, {at_once} cells at once, as busy as this machine is now")


def training_sample(grid: Grid) -> Captioned:
    """Data to time steps on: of the first file, or of the first recipe without its images."""
    if grid.split:
        return SplitDataset(next(iter(grid.files.values())), "train")
    return Noise(splits(grid)[0], grid.resolution)


def steps_of(of_model: Sequence[Cell]) -> int:
    """All steps of a model's cells, those of the cells that they start from too; a shared phase counts once a seed."""
    shared = single_steps(of_model[0].recipe) * (len(of_model) - len({cell.seed for cell in of_model}))
    bases = [cell.base for cell in of_model if cell.base]
    return sum(cell.recipe.steps for cell in of_model) - shared + (steps_of(bases) if bases else 0)


def step_seconds(cell: Cell, data: Captioned) -> float:
    """Wall-clock seconds of a training step."""
    scorer = build_scorer(cell.model, cell.towers, text_space(cell.towers, data.texts()), cell.options).to(cell.device)
    scorer.train()
    optimizer, feed = build_optimizer(scorer, cell.recipe), Feed(data, scorer.reader, cell.recipe, 0, cell.negatives)
    phase = single_steps(cell.recipe)
    start = 0.0
    for step in range(phase, phase + WARM_UP + STEPS):
        if step == phase + WARM_UP:
            start = time.perf_counter()
        train_step(scorer, optimizer, moved(feed[step], scorer.device), cell.recipe, 0, step).item()
    return (time.perf_counter() - start) / STEPS


def shown(seconds: float) -> str:
    """A time for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"

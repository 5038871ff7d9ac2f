"""What a training step takes: timed on a few steps that are not kept, with images of noise."""

import time
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from menagerie.generators.captioned import Captioned, Indices, all_texts
from menagerie.generators.captions.hard_negatives.false_captions import TEXT_NEGATIVES
from menagerie.generators.captions.templates import Caption
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.checkpoint import build_scorer
from menagerie.models.scorer import moved
from menagerie.models.towers.tokenizers import text_space
from menagerie.models.training.feed import Feed, single_steps
from menagerie.models.training.loop import build_optimizer, train_step
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

"""Times a training step of each model of a study on a sample of its data. Nothing is kept."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from menagerie.generators.captioned import Captioned, Indices, all_texts
from menagerie.generators.captions.templates import Caption
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.false_captions import TEXT_NEGATIVES
from menagerie.models.checkpoint import build_scorer
from menagerie.models.scorer import to_device
from menagerie.models.towers.tokenizers import text_space
from menagerie.models.training.feed import Feed, single_steps
from menagerie.models.training.loop import build_optimizer, train_step
from menagerie.studies.runs.cell import Cell

WARM_UP = 8  # images of the step before the timed one, in which libraries load and compile


class Noise(Captioned):
    """A sample of training captions with images of noise; the cost of a step doesn't depend on the images."""

    complete_captions = True
    text_negatives = TEXT_NEGATIVES

    def __init__(self, recipe: SplitRecipe, resolution: int) -> None:
        self.name, self.side = "a sample", resolution
        scenes = recipe.subsets()["train"]
        chosen = scenes[:: max(1, len(scenes) // 500)]
        self.rows = [recipe.texts("train", scene) for scene in chosen]
        self.strata = {"single_object": np.array([len(scene.objects) == 1 for scene in chosen])}

    def __len__(self) -> int:
        return len(self.rows)

    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        return torch.randint(256, (len(indices), 3, self.side, self.side), dtype=torch.uint8)

    def counterfactual_images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        return self.images(indices)

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        return [self.rows[i][0] for i in indices]

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        """Return the hard negatives of the scenes; for kinds that are drawn at random, captions of other scenes."""
        return [self.rows[i][1] if kind == "swap" else self.rows[i - 1][0] for i in indices]

    def counterfactual_items(self, indices: Indices) -> Int64[np.ndarray, " n"]:
        """Return each item as its own counterfactual; a step with other images would take as long."""
        return np.asarray(indices, np.int64)

    def texts(self) -> Iterator[str]:
        yield from all_texts(text for row in self.rows for text in row if text)


noise = lru_cache(maxsize=4)(Noise)  # making one takes longer than a step


def time_step(cell: Cell, data: Captioned) -> float:
    """Return the seconds of a step of a cell's scorer, which has random weights. Pretrained weights, which may not be
    here yet, would take as long."""
    towers = replace(cell.towers, pretrained="", load=True)
    scorer = build_scorer(cell.model, towers, text_space(towers, data.texts()), cell.options).to(cell.device)
    scorer.train()
    step = single_steps(cell.recipe)
    for recipe in (replace(cell.recipe, batch=min(WARM_UP, cell.recipe.batch), accumulate=1), cell.recipe):
        optimizer = build_optimizer(scorer, recipe)
        batch = to_device(Feed(data, scorer.reader, recipe, 0, cell.negatives)[step], scorer.device)
        start = time.perf_counter()
        train_step(scorer, optimizer, batch, recipe, 0, step).item()
    return time.perf_counter() - start

"""Times parts of a study on samples: a training step, scoring, opening data. Nothing is kept."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from menagerie.generators.captioned import Captioned, Indices, all_texts
from menagerie.generators.captions.templates import Caption
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.false_captions import TEXT_NEGATIVES
from menagerie.models.checkpoint import build_scorer
from menagerie.models.evaluation.scoring import BLOCK, encode_pixels, encode_texts
from menagerie.models.layers import evaluation_mode
from menagerie.models.scorer import Scorer, to_device
from menagerie.models.towers.tokenizers import text_space
from menagerie.models.training.feed import Feed, single_steps
from menagerie.models.training.loop import build_optimizer, train_step
from menagerie.studies.frame.arm import Arm
from menagerie.studies.runs.cell import Cell

WARM_UP, STEPS = 3, 10
# A record of a test has two images (its own and the counterfactual) and about ten pairs of image and text.
IMAGES, PAIRS = 2, 10
RECIPES = 4  # recipes whose tests are counted, as a study may have hundreds
SCENE_SECONDS = 0.0002  # to open a scene of a split; measured once


class Tests(NamedTuple):
    """What a run scores after training."""

    images: float
    pairs: float
    """Pairs of an image and a text."""
    validation: float
    """Records of validation; a sample of their swaps is scored during training."""
    opening: float
    """Seconds to open training data and tests."""


class Sample(NamedTuple):
    """Training data, with images of noise if they are of a recipe, and the sizes of tests."""

    data: Captioned
    tests: Tests


def take_sample(arms: Sequence[Arm]) -> Sample:
    """Open the file of the first arm. If it has none, make a sample of its recipe's captions, and average the tests of
    some of the arms' recipes."""
    first = arms[0]
    if not first.file:
        recipes = list(dict.fromkeys(arm.cell.data.splits[0].recipe for arm in arms))
        some = map(count_tests, recipes[:: -(-len(recipes) // RECIPES)])
        return Sample(Noise(recipes[0], first.cell.towers.resolution), Tests(*map(mean, zip(*some, strict=True))))
    start = time.perf_counter()
    material = first.cell.data.open(first.file)
    items = {name: test.items for name, test in material.tests.items()}
    pairs = {
        (name, image, text)
        for name, some in items.items()
        for item in some
        for image in item.images
        for text in item.texts
    }
    images = {pair[:2] for pair in pairs}
    validation = len({item.record for item in items.get("validation", ())})
    return Sample(material.train, Tests(len(images), len(pairs), validation, time.perf_counter() - start))


def count_tests(recipe: SplitRecipe) -> Tests:
    """Estimate the sizes of a recipe's tests."""
    subsets = {name: len(scenes) for name, scenes in recipe.subsets().items()}
    records = sum(subsets.values()) - subsets["train"]
    return Tests(IMAGES * records, PAIRS * records, subsets.get("validation", 0), SCENE_SECONDS * sum(subsets.values()))


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


class Costs(NamedTuple):
    """Costs of a scorer, in seconds of wall-clock time."""

    step: float
    """A training step."""
    image: float
    """Reading and encoding an image of a test."""
    pair: float
    """Encoding a text and comparing it with an image."""
    weight_bytes: int
    """Size of the scorer's weights in a checkpoint, in bytes."""


def measure_costs(cell: Cell, data: Captioned) -> Costs:
    """Build a cell's scorer with random weights, take a few steps, score a few images, and discard it. Pretrained
    weights, which may not be here yet, would take as long."""
    towers = replace(cell.towers, pretrained="", load=True)
    scorer = build_scorer(cell.model, towers, text_space(towers, data.texts()), cell.options).to(cell.device)
    scorer.train()
    optimizer, feed = build_optimizer(scorer, cell.recipe), Feed(data, scorer.reader, cell.recipe, 0, cell.negatives)
    phase = single_steps(cell.recipe)
    start = 0.0
    for step in range(phase, phase + WARM_UP + STEPS):
        if step == phase + WARM_UP:
            start = time.perf_counter()
        train_step(scorer, optimizer, to_device(feed[step], scorer.device), cell.recipe, 0, step).item()
    seconds = (time.perf_counter() - start) / STEPS
    time_scoring(scorer, data)  # the first takes longer
    size = sum(weight.nbytes for weight in scorer.state_dict().values())
    return Costs(seconds, *time_scoring(scorer, data), size)


@torch.no_grad()
def time_scoring(scorer: Scorer, data: Captioned) -> tuple[float, float]:
    """Measure the seconds that an image takes, and those of a text that is compared with it."""
    items = np.resize(np.arange(len(data)), BLOCK)
    with evaluation_mode(scorer):
        start = time.perf_counter()
        embedding = encode_pixels(scorer, data.images(items))
        encoded = time.perf_counter()
        scorer.pair_similarity(embedding, encode_texts(scorer, data.captions(items, items))).cpu()
    return (encoded - start) / BLOCK, (time.perf_counter() - encoded) / BLOCK

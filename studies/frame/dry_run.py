"""`--dry-run`: what a study would take on this machine, estimated from a few scenes and steps that are made and not
kept."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from menagerie.envs.core.files import scratch_folder
from menagerie.envs.worlds import load_world
from menagerie.generators.captioned import Captioned, Indices, all_texts
from menagerie.generators.captions.hard_negatives.false_captions import TEXT_NEGATIVES
from menagerie.generators.captions.templates import Caption
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.estimate import estimate
from menagerie.generators.storage.image_store import ImageStore
from menagerie.models.checkpoint import build_scorer
from menagerie.models.evaluation.scoring import BLOCK, encode, encode_texts, in_use
from menagerie.models.recipe import Recipe
from menagerie.models.scorer import Scorer, moved
from menagerie.models.towers.tokenizers import text_space
from menagerie.models.training.feed import Feed, single_steps
from menagerie.models.training.loop import build_optimizer, train_step
from menagerie.studies.frame.adaptive import all_arms
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.checks import check_states
from menagerie.studies.frame.study import Study
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.evaluation import MOST, looks_after
from menagerie.studies.runs.shared import trunk_key

WARM_UP, STEPS = 3, 10
REST_SECONDS = 0.5  # of a run beside its steps and tests: building the model, log, checkpoint; measured once
# Of a study beside its runs and the checks before them, in terms of what loading torch and the study has taken here:
# the command loads them, so do the workers, and the page takes half as long again. Measured once.
LOADS = 2.5
TEXTS = 4  # that a test record's image is scored with, on average; its partner's image counts too
LOOK = 0.25  # a swap in an evaluation during training, in test records: one image with two texts


def dry_run(study: Study) -> None:
    """Print what is to be rendered and trained, and how long both take; for an adaptive study, the most that it may
    take."""
    torch.set_num_threads(study.threads)
    with scratch_folder() as folder:
        study = study.prepare(folder)
        check_states(study)
        for name, text in study.notes().items():
            print(f"{name}: {text}")
        arms = all_arms(study)
        seconds = start_seconds() + rendering(study, arms)
        seconds += training(study, arms) / min(study.at_once, len(arms))
    at_once = min(study.at_once, len(arms))
    print(f"at most about {shown(seconds)} in all, {at_once} runs at once, as busy as this machine is now")


def start_seconds() -> float:
    """Estimate how long a study takes beside its runs, from the processor time that this command has taken so far: it
    has loaded the same modules, and made the same checks in child processes."""
    mine = os.times()
    return LOADS * (mine.user + mine.system) + mine.children_user + mine.children_system


def rendering(study: Study, arms: Sequence[Arm]) -> float:
    """Print how many scenes each image store lacks; returns roughly how many seconds it takes to render them all."""
    stores: dict[tuple[str, int], dict[Any, None]] = {}
    for arm in arms:
        if not arm.file and isinstance(arm.cell, Cell):
            for split in arm.cell.data.splits:
                stores.setdefault((split.recipe.world, arm.cell.towers.resolution), {})[split.recipe] = None
    total = 0.0
    for (world, side), recipes in stores.items():
        scenes = {scene for recipe in recipes for scene in recipe.scenes_to_render()}
        cost = estimate(ImageStore(study.store, load_world(world), side), sorted(scenes), study.cores)
        total += cost.seconds
        words = f"{len(scenes)} scenes, {cost.scenes} of them to render: {cost.megabytes:.0f} MB, {shown(cost.seconds)}"
        print(f"{Path(world).stem}, {side} px: {words}")
    return total


def training(study: Study, arms: Sequence[Arm]) -> float:
    """Print the steps of each kind of run and their time, and the disk space that kept states take; returns the seconds
    that all runs take one after another."""
    alike: dict[Any, list[Arm]] = {}
    for arm in arms:
        cell, given = arm.cell, (arm.file, arm.cell.data.name) if arm.file else None
        kind = (cell.model, cell.towers, cell.recipe.batch, bool(cell.recipe.text_negatives), str(cell.options), given)
        alike.setdefault(kind, []).append(arm)
    total, samples, kept = 0.0, {}, []
    for (model, towers, batch, negatives, _, given), same in alike.items():
        cells = list({cell.id: cell for cell in (arm.cell.trained_as for arm in same)}.values())
        key = given, cells[0].data.kind, towers.resolution
        if key not in samples:
            samples[key] = sample_of(same[0])
        sample, tests = samples[key]
        steps, (each, record, size) = steps_of(cells), measured_step(without_weights(cells[0]), sample)
        kept.append(kept_of([arm.cell for arm in same], study.keep_states, size))
        total += steps * each + len(same) * (REST_SECONDS + sum(tests.values()) * record)
        looks = sum(looks_of(cell.recipe, study.validate_every) for cell in cells)
        total += looks * min(MOST, tests.get("validation", 0)) * LOOK * record
        if bases := [cell.base for cell in cells if cell.base]:
            step = measured_step(without_weights(bases[0]), sample)
            kept.append(kept_of(bases, study.keep_states, step.weight_bytes))
            total += steps_of(bases) * step.seconds
        runs = f"{model}{' with false captions' * negatives}, {towers.architecture}, batch {batch}: {len(same)} runs"
        borrowed = f" ({len(same) - len(cells)} of which only score another's weights)" * (len(same) > len(cells))
        print(f"{runs}{borrowed}, {steps} steps, {1000 * each:.0f} ms each", flush=True)
    if study.keep_states:
        states, size = (sum(column) for column in zip(*kept, strict=True))
        print(f"--keep-states: {states} states of all runs, {size / 1e6:,.1f} MB")
    return total


def sample_of(arm: Arm) -> tuple[Captioned, dict[str, int]]:
    """Return training data of an arm, and the number of records in validation and in each test; of a recipe without its
    images."""
    if arm.file:
        material = arm.cell.data.open(arm.file)
        tests = material.tests.items()
        return material.train, {name: len({item.record for item in test.items}) for name, test in tests}
    data = Noise(arm.cell.data.splits[0].recipe, arm.cell.towers.resolution)
    return data, data.tests


@cache
def looks_of(recipe: Recipe, every: int) -> int:
    """Count the evaluations during training, one every `every` steps (0: as often as by default)."""
    return sum(looks_after(step, recipe, every) for step in range(1, recipe.steps + 1))


class Kept(NamedTuple):
    """States of `--keep-states`, and the disk space that they take."""

    states: int
    bytes: int


def kept_of(cells: Sequence[Cell], keep_states: Sequence[int], weight_bytes: int) -> Kept:
    """Count the states that runs keep, if their weights take `weight_bytes` each. Steps that a run doesn't reach have
    no state."""
    lengths = {cell.id: cell.recipe.steps for cell in cells}.values()
    states = sum(step <= steps for steps in lengths for step in {*keep_states})
    return Kept(states, states * weight_bytes)


def without_weights(cell: Cell) -> Cell:
    """Return the cell with random weights in place of pretrained ones, which may not be here yet. Its steps take as
    long."""
    return replace(cell, towers=replace(cell.towers, pretrained="", load=True))


def steps_of(cells: Sequence[Cell]) -> int:
    """Count the steps of all runs of one kind; steps that several runs share count once."""
    trunks: dict[str, list[Recipe]] = {}
    for cell in cells:
        trunks.setdefault(trunk_key(cell) if cell.recipe.decay else cell.id, []).append(cell.recipe)
    total = sum(map(trunk_steps, trunks.values()))
    first = {(cell.seed, str(cell.recipe), cell.data.kind, worlds_of(cell)) for cell in cells}
    phase = 0 if cells[0].recipe.decay else single_steps(cells[0].recipe)
    return total - phase * (len(cells) - len(first))


def worlds_of(cell: Cell) -> tuple[str, ...]:
    """Return the world in which a cell is trained, since runs in different worlds have no steps in common."""
    return tuple(split.recipe.world for split in cell.data.splits[:1])


def trunk_steps(recipes: Sequence[Recipe]) -> int:
    """Count the steps of runs that differ only in their number of steps. They share the longest stable phase; each has
    its own decay."""
    if len(recipes) == 1:
        return recipes[0].steps
    return max(r.stable_steps for r in recipes) + sum(r.steps - r.stable_steps for r in recipes)


class Noise(Captioned):
    """A sample of training captions with images of noise, as a step's cost doesn't depend on what images show."""

    complete_captions = True
    text_negatives = TEXT_NEGATIVES

    def __init__(self, recipe: SplitRecipe, resolution: int) -> None:
        self.name, self.side = "a sample", resolution
        subsets = recipe.subsets()
        scenes = subsets.pop("train")
        self.tests = {name: len(tested) for name, tested in subsets.items()}
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
        """Return each item as its own partner; a step with other images would take as long."""
        return np.asarray(indices, np.int64)

    def texts(self) -> Iterator[str]:
        yield from all_texts(text for row in self.rows for text in row if text)


class Step(NamedTuple):
    """A training step of a scorer."""

    seconds: float
    """Wall-clock time of the step."""
    record_seconds: float
    """Wall-clock time of scoring a test record."""
    weight_bytes: int
    """Size of the scorer's weights in a checkpoint, in bytes."""


def measured_step(cell: Cell, data: Captioned) -> Step:
    """Measure a training step of a cell's scorer: build it, take a few steps, and discard it."""
    scorer = build_scorer(cell.model, cell.towers, text_space(cell.towers, data.texts()), cell.options).to(cell.device)
    scorer.train()
    optimizer, feed = build_optimizer(scorer, cell.recipe), Feed(data, scorer.reader, cell.recipe, 0, cell.negatives)
    phase = single_steps(cell.recipe)
    start = 0.0
    for step in range(phase, phase + WARM_UP + STEPS):
        if step == phase + WARM_UP:
            start = time.perf_counter()
        train_step(scorer, optimizer, moved(feed[step], scorer.device), cell.recipe, 0, step).item()
    seconds = (time.perf_counter() - start) / STEPS
    return Step(seconds, record_seconds(scorer, data), sum(weight.nbytes for weight in scorer.state_dict().values()))


@torch.no_grad()
def record_seconds(scorer: Scorer, data: Captioned) -> float:
    """Measure how long it takes to score a test record: its image and its partner's, each with `TEXTS` texts."""
    items = np.resize(np.arange(len(data)), (TEXTS, BLOCK))
    pixels, texts = data.images(items[0]), [data.captions(row, row) for row in items]
    with in_use(scorer):
        start = time.perf_counter()
        code = encode(scorer, pixels)
        for captions in texts:
            scorer.paired(code, encode_texts(scorer, captions)).cpu()
        return 2 * (time.perf_counter() - start) / BLOCK


def shown(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"

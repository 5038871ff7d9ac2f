"""Times the stages of a training step: images, texts, comparison, update (`studies/throughput.py stages`).

Embeddings are detached from the step's graph, so that the backward pass of each stage is timed by itself. Models take
their steps in turns, so that other load slows all of them alike."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Annotated

from menagerie.envs.core.validation import Several
from menagerie.models.recipe import Recipe
from menagerie.models.registry import check_scorer, spec_of
from menagerie.studies.analysis.step_timing import WARM_UP, Timed, training_data
from menagerie.studies.runs.machine import processor, settle_torch

if TYPE_CHECKING:
    import torch

    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.scorer import Scorer
    from menagerie.models.texts import Tensors
    from menagerie.models.training.feed import Batch

STAGES = ("images", "texts", "comparison", "update")


@dataclass(frozen=True)
class Stages(Timed):
    """Time each stage of training steps, forward and backward, on a CPU; models take their steps in turns."""

    models: Annotated[tuple[str, ...], Several(1)] = ("clip", "oc-clip")
    """Scorers by name; ratios are to the first."""


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
    scorer: "Scorer", optimizer: "torch.optim.Optimizer", batch: "Batch", recipe: Recipe, step: int
) -> dict[str, float]:
    """Take an optimiser step like `menagerie.models.training.loop.train_step`; returns the processor time (s) of each
    stage."""
    from menagerie.models.training.batch_loss import batch_pixels
    from menagerie.models.training.loop import set_rates, update

    marks = [time.process_time()]

    def mark() -> None:
        marks.append(time.process_time())

    images = scorer.encode_images(batch_pixels(scorer, batch))
    mark()
    texts = scorer.encode_texts(batch.texts)
    mark()
    ends = detach_embedding(images), detach_embedding(texts)
    scorer.loss(*ends, batch.targets, recipe).backward()
    mark()
    continue_backward(images, ends[0])
    mark()
    continue_backward(texts, ends[1])
    mark()
    set_rates(optimizer, step, recipe.steps, recipe.stable_steps)
    update(scorer, optimizer)
    optimizer.zero_grad(set_to_none=True)
    mark()
    first, second, compared, back, last, updated = (after - before for before, after in pairwise(marks))
    return dict(zip(STAGES, (first + back, second + last, compared, updated), strict=True))


def steps_in_turns(config: Stages, data: "SplitDataset") -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each model with the times of one of its steps, round by round, without the first `WARM_UP` rounds."""
    import torch

    from menagerie.models.checkpoint import build_scorer
    from menagerie.models.towers.config import TowerConfig
    from menagerie.models.towers.tokenizers import text_space
    from menagerie.models.training.feed import Feed
    from menagerie.models.training.loop import build_optimizer

    towers, trained = TowerConfig(config.architecture, resolution=config.resolution), {}
    recipe = Recipe(steps=10_000, batch=config.batch, singles_share=0.5)
    for model in config.models:
        torch.manual_seed(0)
        spec = spec_of(model)
        scorer = build_scorer(model, towers, text_space(towers, data.texts()), dict(spec.small)).train()
        trained[model] = scorer, build_optimizer(scorer, recipe), Feed(data, scorer.reader, recipe, 0, spec.negatives)
    for number in range(config.repeats + WARM_UP):
        for model, (scorer, optimizer, feed) in trained.items():
            times = timed_step(scorer, optimizer, feed[number], recipe, number)
            if number >= WARM_UP:
                yield model, times


def measure_stages(config: Stages) -> int:
    """Print a row for each model: median times of its stages and whole steps, and a ratio to the first model."""
    config.check()
    for model in config.models:
        check_scorer(model)
    settle_torch(threads=1)
    rows: dict[str, list[dict[str, float]]] = {model: [] for model in config.models}
    for model, times in steps_in_turns(config, training_data(config)):
        rows[model].append(times | {"whole step": sum(times.values())})
    print(f"{config.architecture}, {config.resolution} px, batch {config.batch}, 1 thread, {processor()}; CPU-ms")
    print(f"{'':<16}" + "".join(f"{name:>12}" for name in (*STAGES, "whole step", "ratio")))
    first = rows[config.models[0]]
    for model, its in rows.items():
        cells = [1000 * median(times[name] for times in its) for name in (*STAGES, "whole step")]
        ratio = median(own["whole step"] / other["whole step"] for own, other in zip(its, first, strict=True))
        print(f"{model:<16}" + "".join(f"{cell:12.1f}" for cell in cells) + f"{ratio:12.2f}")
    return 0

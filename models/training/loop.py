"""Train a scorer on a split; stop and resume at any step with the same result."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from envs.common.errors import Stopped, UserError
from envs.common.seeds import seed_of
from generators.storage.dataset import SplitDataset
from models.objectives import Truths, contrastive_loss, local_relation_loss, truths
from models.recipe import ALTERED, Recipe
from models.scorer import Scorer
from models.training.augment import prepare
from models.training.optimizer import build_optimizer, set_rates
from models.training.sampling import BatchSampler
from models.training.state import load_state, save_state

# Gradients are clipped to this norm.
LARGEST_GRADIENT = 1.0


class Diverged(UserError):
    """A training run whose loss is no finite number any more."""


@dataclass(frozen=True)
class Progress:
    """What a training run tells of itself after a step."""

    step: int
    steps: int
    loss: float


def loss_of(scorer: Scorer, data: SplitDataset, indices: np.ndarray, recipe: Recipe, seed: int) -> Tensor:
    """The training loss of one batch; all its randomness comes from `seed`."""
    torch.manual_seed(seed)  # for scorers with dropout
    generator = torch.Generator().manual_seed(seed)
    device = scorer.log_scale.device
    graphs = [data.records.graphs[i] for i in indices]
    captions = [data.records.captions[i] for i in indices]
    pixels = prepare(data.images(indices), recipe.augment, generator, device)
    images, texts = scorer.encode_images(pixels), scorer.encode_texts(captions, graphs)
    told = Truths(*(matrix.to(device) for matrix in truths(graphs)))
    loss = contrastive_loss(scorer.similarity(images, texts), scorer.logit_scale(), told, recipe.leave_out_true)
    if "perturbed_graphs" in scorer.capabilities and recipe.local_weight and any(graph.edges for graph in graphs):
        local = scorer.perturbed_similarities(images, texts, generator)
        asked = [0, *(1 + ALTERED.index(name) for name in recipe.local_negatives)]
        loss = loss + recipe.local_weight * local_relation_loss(local[:, asked], scorer.logit_scale())
    return loss


def train(
    scorer: Scorer,
    data: SplitDataset,
    recipe: Recipe,
    seed: int,
    state_file: Path | None = None,
    save_every: int = 100,
    report: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Train `scorer` in place.

    With a `state_file` the run goes on from it where there is one, and saves to it every
    `save_every` steps, and after the step in whose `report` it is `Stopped`; its result doesn't
    depend on how often it was stopped.
    """
    is_single = np.array([len(scene.things) == 1 for scene in data.records.scenes])
    sampler = BatchSampler(is_single, recipe.batch, recipe.singles_share, seed, round(recipe.warm_start * recipe.steps))
    optimizer = build_optimizer(scorer, recipe)
    step = load_state(state_file, scorer, optimizer) if state_file else 0
    scorer.train()
    while step < recipe.steps:
        set_rates(optimizer, step, recipe.steps)
        loss = loss_of(scorer, data, sampler.indices(step), recipe, seed_of(seed, "step", step))
        if not loss.isfinite():
            raise Diverged(
                f"the loss of {type(scorer).__name__} is {loss.item()} at step {step}; lower --learning-rate"
            )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(scorer.parameters(), LARGEST_GRADIENT)
        optimizer.step()
        scorer.limit_scale()
        step += 1
        try:
            report(Progress(step, recipe.steps, loss.item()))  # before the state: a resumed run leaves out no step
        except Stopped:
            if state_file:
                save_state(state_file, scorer, optimizer, step)
            raise
        if state_file and step % save_every == 0:
            save_state(state_file, scorer, optimizer, step)
    scorer.eval()

"""Trains a scorer on captioned images; a run can be stopped and resumed at any step with the same result. The optimiser
is AdamW with a learning rate and a warm-up for each part of a scorer."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from menagerie.envs.core.errors import Stopped
from menagerie.envs.core.identity import seed_of
from menagerie.generators.captioned import Captioned
from menagerie.models.ranks import Ranks, taking_part
from menagerie.models.recipe import Recipe
from menagerie.models.scorer import Diverged, Scorer
from menagerie.models.training.encoding import matmul_precision, pack_training, step_loss, unpack
from menagerie.models.training.feed import Batch, Feed
from menagerie.models.training.loaders import device_batches
from menagerie.models.training.state import History, StateFile, load_state, save_state

# Gradients of every model are clipped to this norm. Among the papers' recipes only SigLIP's does so.
LARGEST_GRADIENT = 1.0
# Steps between two reads of the loss: on a GPU each read waits for all steps before it.
CHECK_EVERY = 20


@dataclass(frozen=True)
class Progress:
    """The state of a training run after a step."""

    step: int
    steps: int
    loss_tensor: Float[Tensor, ""]

    @property
    def loss(self) -> float:
        """The step's loss; on a GPU this waits for the step."""
        return self.loss_tensor.item()


def train_scorer(
    scorer: Scorer,
    data: Captioned,
    recipe: Recipe,
    seed: int,
    state_file: StateFile | None = None,
    save_every: int = 100,
    report: Callable[[Progress], None] = lambda progress: None,
    *,
    until: int | None = None,
    negatives: tuple[str, ...] = (),
    workers: int = 0,
    history: History | None = None,
    ranks: Ranks | None = None,
    room: int = 0,
) -> None:
    """Train `scorer` in place, to the end or only `until` a step.

    With a `state_file`, training continues from it if it exists, and saves to it every `save_every` steps, at `until`,
    and after the step whose `report` raises `Stopped`. The result depends neither on interruptions nor on the number of
    `workers` that prepare batches, nor on `room`, the bytes that all images may take to stay on the device. Only with
    `recipe.compile` may a resumed run differ, by rounding, because it compiles for another first batch.

    `history` gets every step once; its latest losses are read every `CHECK_EVERY` steps, at the end and whenever a
    state is saved. With `ranks`, the other processes take each step together with this one, by `join_training`; the
    caller tells them of the end.
    """
    end = recipe.steps if until is None else min(until, recipe.steps)
    history = History(recipe.batch) if history is None else history
    feed = feed_of(scorer, data, recipe, seed, negatives, ranks)
    optimizer, start = begin(scorer, data, recipe, seed, state_file, history, ranks)
    parts = device_batches(feed, start, end, scorer.device, workers, room)
    history.restart()
    for done, batch in enumerate(history.time_waiting(parts), start=start + 1):
        if ranks:
            ranks.send()
        loss = train_step(scorer, optimizer, batch, recipe, seed, done - 1, ranks)
        history.add(done, loss, max(group["lr"] for group in optimizer.param_groups))
        saves = state_file is not None and (done % save_every == 0 or done == until)
        if waits := saves or done % CHECK_EVERY == 0 or done == end:
            read_losses(history, scorer, done)
        stopped = report_step(report, Progress(done, recipe.steps, loss.detach()))
        if state_file and (saves or stopped):
            read_losses(history, scorer, done)
            save_state(state_file, scorer, optimizer, done, history)
        if stopped:
            raise stopped
        if waits:
            history.restart()
    scorer.eval()


def begin(
    scorer: Scorer,
    data: Captioned,
    recipe: Recipe,
    seed: int,
    state_file: StateFile | None,
    history: History,
    ranks: Ranks | None,
) -> tuple[torch.optim.AdamW, int]:
    """Make the optimiser, load a state, and send it to other ranks; returns the optimiser and the next step."""
    optimizer = build_optimizer(scorer, recipe)
    start = load_state(state_file, scorer, optimizer, history) if state_file else 0
    if scorer.references:
        scorer.keep_references(data.images(reference_items(len(data), scorer.references, seed)))
    if ranks:
        ranks.send(pack_training(scorer, optimizer, start))
    scorer.train()
    return optimizer, start


def report_step(report: Callable[[Progress], None], progress: Progress) -> Stopped | None:
    """Report a step, before its state is saved, so that a resumed run reports every step. Return the error by which the
    report stops the run, if it does."""
    try:
        report(progress)
    except Stopped as error:
        return error
    return None


def reference_items(size: int, count: int, seed: int) -> np.ndarray:
    """Draw the training items that a scorer keeps, with the seed alone. None is drawn twice if there are enough."""
    return np.random.default_rng(seed_of(seed, "references")).choice(size, count, replace=size < count)


def join_training(
    scorer: Scorer,
    data: Captioned,
    recipe: Recipe,
    seed: int,
    ranks: Ranks,
    negatives: tuple[str, ...] = (),
    workers: int = 0,
    room: int = 0,
) -> None:
    """Take the steps of a training together with the process that calls `train_scorer`, until that process ends it."""
    feed = feed_of(scorer, data, recipe, seed, negatives, ranks)
    optimizer = build_optimizer(scorer, recipe)
    if (state := ranks.receive()) is None:
        return
    start = unpack(state, scorer, optimizer)
    scorer.train()
    parts = device_batches(feed, start, recipe.steps, scorer.device, workers, room)
    for step, batch in enumerate(parts, start=start):
        if ranks.receive() is None:
            return
        train_step(scorer, optimizer, batch, recipe, seed, step, ranks)
    ranks.receive()


def feed_of(
    scorer: Scorer, data: Captioned, recipe: Recipe, seed: int, negatives: tuple[str, ...], ranks: Ranks | None
) -> Feed:
    """Make the feed of a training; with `ranks`, of this process's share of each batch."""
    reader = scorer.training_reader or scorer.reader
    if ranks is None:
        return Feed(data, reader, recipe, seed, negatives)
    return Feed(data, reader, recipe, seed, negatives, ranks.share, scorer.sharing.images == "gathered")


def train_step(
    scorer: Scorer,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    recipe: Recipe,
    seed: int,
    step: int,
    ranks: Ranks | None = None,
) -> Float[Tensor, ""]:
    """Take one optimiser step, together with other `ranks` if there are any; returns its loss."""
    seed_dropout(seed_of(seed, "step", step))
    set_rates(optimizer, step, recipe.steps, recipe.stable_steps)
    with matmul_precision(recipe.precision), taking_part(ranks):
        loss = step_loss(scorer, batch, recipe)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
    if ranks:
        loss = ranks.add_up(scorer.parameters(), loss)
    update(scorer, optimizer)
    return loss


def update(scorer: Scorer, optimizer: torch.optim.Optimizer) -> None:
    """Clip the gradients, take a step of the optimiser, and limit the temperature."""
    torch.nn.utils.clip_grad_norm_(scorer.parameters(), LARGEST_GRADIENT)
    optimizer.step()
    scorer.limit_scale()


def seed_dropout(seed: int) -> None:
    """Seed torch. Without a GPU, `torch.manual_seed` would keep a stack trace of each call for good; this avoids it."""
    if torch.cuda.is_initialized():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def read_losses(history: History, scorer: Scorer, step: int) -> None:
    """Wait for all steps so far. Raise if a loss or a weight, which shows the last step, isn't finite."""
    weights = [parameter.isfinite().all() for parameter in scorer.parameters() if parameter.requires_grad]
    history.read()
    for what, right in (("the loss", history.finite), ("a weight", torch.stack(weights).all())):
        if not right:
            raise Diverged(
                f"{what} of {type(scorer).__name__} is no finite number by step {step}; lower --learning-rate"
            )


def rate_factor(step: int, warmup: int, steps: int, stable: int | None = None) -> float:
    """Return the factor of the learning rate at a step: linear warm-up, then a cosine to zero. It depends only on the
    step, never on the clock.

    With `stable`, the rate is constant until that step, then falls to zero as 1 - sqrt, which is as good as a cosine of
    the same length (Hägele et al. 2024; warmup-stable-decay: Hu et al. 2024).
    """
    if step < warmup:
        return (step + 1) / warmup
    if stable is not None:
        return 1 - math.sqrt(max(0, step - stable) / max(1, steps - stable))
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def build_optimizer(scorer: Scorer, recipe: Recipe) -> torch.optim.AdamW:
    """Make AdamW over the scorer's parts; each group has its peak rate ("peak") and "warmup"."""
    backbones = scorer.backbones()
    in_backbone = {id(parameter) for part in backbones.values() for parameter in part}
    parts = {**backbones, "rest": [p for p in scorer.parameters() if id(p) not in in_backbone]}
    rates = {"vision": recipe.vision_learning_rate, "text": recipe.text_learning_rate, "rest": None}
    warmups = {"vision": recipe.vision_warmup, "text": recipe.text_warmup, "rest": None}
    groups = []
    for name, parameters in parts.items():
        peak = recipe.learning_rate if rates[name] is None else rates[name]
        warmup = recipe.warmup if warmups[name] is None else warmups[name]
        for matrices, decay in ((True, recipe.weight_decay), (False, 0.0)):
            chosen = [p for p in parameters if p.requires_grad and (p.ndim >= 2) == matrices]
            groups.append({"params": chosen, "weight_decay": decay, "peak": peak, "warmup": warmup})
    groups = [group for group in groups if group["params"]]
    # Update all parameters in a few calls. On a CPU `foreach` gives the same bytes as one by one, `fused` doesn't.
    how = {"fused": True} if scorer.device.type == "cuda" else {"foreach": True}
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas, **how)


def set_rates(optimizer: torch.optim.Optimizer, step: int, steps: int, stable: int | None = None) -> None:
    """Set every group's learning rate for `step`."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * rate_factor(step, group["warmup"], steps, stable)

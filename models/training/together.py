"""Checks that several processes can train together; packs a training's state, which the first sends to the others."""

import io

import torch
from torch import nn

from menagerie.envs.core.errors import UserError
from menagerie.models.recipe import Recipe
from menagerie.models.registry import own_file
from menagerie.models.scorer import Scorer
from menagerie.models.training.encoding import check_batch_free


def check_together(scorer: Scorer, recipe: Recipe, processes: int) -> None:
    """Raise if several processes that share a scorer's steps can't get the loss and gradients of a single process."""
    check_batch(recipe, processes)
    if recipe.compile:
        raise UserError("--compile compiles the step of one process; train in one, or without --compile")
    check_declared(type(scorer))
    check_batch_free(scorer, "training in several processes")
    if names := random_layers(scorer):
        raise UserError(f"{names[0]} drops at random, differently in several processes than in one; train in one")


def check_batch(recipe: Recipe, processes: int) -> None:
    """Raise for a batch that processes can't share equally, or that leaves one too few images for `--accumulate`."""
    if recipe.batch % processes:
        raise UserError(f"--batch {recipe.batch} can't be shared by {processes} processes evenly; choose a multiple")
    if recipe.accumulate > recipe.batch // processes:
        raise UserError(
            f"--accumulate {recipe.accumulate} is more than the {recipe.batch // processes} images of each of "
            f"{processes} processes; lower it"
        )


def check_declared(kind: type[Scorer]) -> None:
    """Raise for a class that doesn't say how processes share its steps. A user's class must say so itself, because what
    it inherits may be wrong for its own loss."""
    if kind.sharing is None or (own_file(kind) and "sharing" not in vars(kind)):
        raise UserError(
            f"{kind.__name__} doesn't say how several processes share its steps: give the class a line "
            "`sharing = Sharing(...)` (docs/training.md), or train it in one process"
        )


def random_layers(scorer: nn.Module) -> list[str]:
    """Describe the layers that drop something at random in training. Frozen parts stay in evaluation mode, so their
    layers don't count."""
    before = {module: module.training for module in scorer.modules()}
    scorer.train()
    found = []
    for name, module in scorer.named_modules():
        rates = (getattr(module, rate, 0) for rate in ("p", "prob", "drop_prob", "dropout"))
        if module.training and any(isinstance(rate, float) and rate > 0 for rate in rates):
            found.append(f"layer {name} ({type(module).__name__})")
    for module, mode in before.items():
        module.training = mode
    return found


def pack_training(scorer: Scorer, optimizer: torch.optim.Optimizer, start: int) -> bytes:
    """Serialise the weights, the optimiser's state and the number of steps taken so far."""
    content = io.BytesIO()
    torch.save({"scorer": scorer.state_dict(), "optimizer": optimizer.state_dict(), "start": start}, content)
    return content.getvalue()


def unpack(content: bytes, scorer: Scorer, optimizer: torch.optim.Optimizer) -> int:
    """Load what `pack_training` returned, and return the number of steps taken so far."""
    state = torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
    scorer.load_state_dict(state["scorer"])
    optimizer.load_state_dict(state["optimizer"])
    return state["start"]

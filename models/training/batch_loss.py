"""The loss of a batch in a training step, with or without torch.compile."""

from collections.abc import Callable
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.models.ranks import ranks_of_step
from menagerie.models.recipe import Recipe
from menagerie.models.scorer import Scorer
from menagerie.models.training.augment import augment
from menagerie.models.training.encoding import encode_batch
from menagerie.models.training.feed import Batch


def batch_loss(scorer: Scorer, batch: Batch, recipe: Recipe) -> Float[Tensor, ""]:
    """Compute the training loss of a batch that is on the scorer's device, without waiting for the device.

    If several processes take the step together, return this process's share of the loss.
    """
    embeddings = encode_batch(scorer, batch_pixels(scorer, batch), batch.texts, recipe)
    loss, ranks = scorer.loss(*embeddings, batch.targets), ranks_of_step()
    if ranks and scorer.sharing.images == "gathered":
        return loss / ranks.share.count  # all have computed the whole
    return loss


def batch_pixels(scorer: Scorer, batch: Batch) -> Float[Tensor, "n 3 h w"]:
    """Return the images of a batch as floats for the scorer's tower, augmented if the batch has a variation."""
    pixels = scorer.pixel_scale(batch.images)
    return pixels if batch.variation is None else augment(pixels, batch.variation)


def step_loss(scorer: Scorer, batch: Batch, recipe: Recipe) -> Float[Tensor, ""]:
    """`batch_loss`, compiled if the recipe says so."""
    if not recipe.compile:
        return batch_loss(scorer, batch, recipe)
    from torch._dynamo.exc import TorchDynamoException

    try:
        return compile_for(scorer)(scorer, batch, recipe)
    except TorchDynamoException as error:
        reason = next(filter(None, str(error).splitlines()), type(error).__name__)
        raise UserError(
            f"torch.compile can't compile a step of {type(scorer).__name__} ({reason}); train it without --compile"
        ) from error


@lru_cache(maxsize=1)
def compile_for(scorer: Scorer) -> Callable[[Scorer, Batch, Recipe], Tensor]:
    """Compile `batch_loss` as one graph, forward and backward. If the number of texts differs between batches, it is a
    variable of the graph from the second batch on.

    For another scorer, compile it anew and drop the last scorer's graphs, because torch refuses a function that it has
    compiled too often.
    """
    torch.compiler.reset()
    return torch.compile(batch_loss, fullgraph=True)

"""The loss of a batch in a training step, with or without torch.compile: encodes the batch in the recipe's precision
and number of parts, decides which activations are kept for the backward pass, and checks that several processes can
share a step."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache

import torch
from jaxtyping import Float
from open_clip.transformer import Transformer
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from menagerie.envs.core.errors import UserError
from menagerie.models.ranks import Ranks, ranks_of_step, sharing_texts
from menagerie.models.recipe import Precision, Recipe
from menagerie.models.registry import own_file
from menagerie.models.scorer import Scorer
from menagerie.models.texts import Tensors, concatenate, leaves, map_tensors
from menagerie.models.training.feed import Batch, augment


def encode_batch(
    scorer: Scorer, pixels: Float[Tensor, "n 3 h w"], texts: Tensors, recipe: Recipe
) -> tuple[Tensors, Tensors]:
    """Return the embeddings of images and of texts, in float32 even if they are computed in bfloat16.

    Similarities in bfloat16 would tie, because their differences are as small as its rounding (docs/training.md).

    If several processes take the step together, each encodes its share. The embedding of texts is then that of all
    texts, and if `scorer.sharing.images` is "gathered", that of images is of all images too."""
    low, ranks = recipe.precision == "bf16", ranks_of_step()
    by_rows = ranks is not None and scorer.sharing.texts == "rows"
    if by_rows:
        total = len(next(leaves(texts)))
        texts = map_tensors(texts, ranks.own_rows)
        own = len(next(leaves(texts)))
    with (
        torch.autocast(scorer.device.type, torch.bfloat16) if low else nullcontext(),
        sharing_texts() if ranks and not by_rows else nullcontext(),
    ):
        embeddings = encode_in_parts(scorer, pixels, recipe.accumulate), scorer.encode_texts(texts)
    images, embedding = (map_tensors(embedding, to_float32) for embedding in embeddings) if low else embeddings
    if by_rows:
        embedding = gather_embedding(ranks, embedding, own, total)
    if ranks and scorer.sharing.images == "gathered":
        images = gather_embedding(ranks, images, len(pixels), len(pixels) * ranks.share.count)
    return images, embedding


def gather_embedding(ranks: Ranks, embedding: Tensors, own: int, total: int) -> Tensors:
    """Return all `total` rows of an embedding, `own` of them of this process; raises for another number."""
    if any(len(part) != own for part in leaves(embedding)):
        raise UserError(
            f"processes can't share a scorer's embeddings that lack a row for each of {own} images or texts"
        )
    return map_tensors(embedding, lambda part: ranks.gather_rows(part, total))


def to_float32(part: Tensor) -> Tensor:
    """Convert a tensor of half precision to float32; others are returned unchanged."""
    return part.float() if part.dtype in (torch.bfloat16, torch.float16) else part


def encode_in_parts(scorer: Scorer, pixels: Float[Tensor, "n 3 h w"], count: int) -> Tensors:
    """Encode images in `count` parts, one after the other; the backward pass encodes each part again.

    The gradient is that of the whole batch's loss (as in GradCache, Gao et al. 2021), dropout included.
    """
    if count == 1:
        return scorer.encode_images(pixels)
    check_batch_free(scorer, "--accumulate")
    parts = pixels.tensor_split(count)
    return concatenate([checkpoint(scorer.encode_images, part, use_reentrant=False) for part in parts])


def check_batch_free(scorer: nn.Module, option: str) -> None:
    """Raise if a layer takes statistics over a batch, because parts of a batch would have statistics of their own, and
    a part that is encoded twice would count twice."""
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in scorer.modules()):
        raise UserError(f"{option} needs towers without batch normalisation; choose a ViT such as ViT-B-16")


def checkpoint_blocks(scorer: nn.Module) -> None:
    """Keep only the input of each transformer block; the backward pass computes the rest again, to the same bytes."""
    blocks = [module for module in scorer.modules() if isinstance(module, Transformer | VisionTransformer)]
    check_batch_free(scorer, "--grad-checkpointing")
    if not blocks:
        raise UserError("--grad-checkpointing needs towers of transformer blocks; choose a ViT such as ViT-B-16")
    for module in blocks:
        module.grad_checkpointing = True


@contextmanager
def matmul_precision(precision: Precision) -> Iterator[None]:
    """Let a GPU's matrix products round their factors to TF32 inside this context, if the precision is tf32."""
    if precision != "tf32":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


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
    """Describe the layers that drop something at random in training; frozen parts, in evaluation mode, don't."""
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

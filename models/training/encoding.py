"""Encodes batches for training, in the recipe's precision and number of parts; decides which activations are kept for
the backward pass."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from jaxtyping import Float
from open_clip.transformer import Transformer
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from menagerie.envs.core.errors import UserError
from menagerie.models.chunks import concatenate
from menagerie.models.ranks import Ranks, ranks_of_step, sharing_texts
from menagerie.models.recipe import Precision, Recipe
from menagerie.models.scorer import Scorer
from menagerie.models.texts import Tensors, leaves, map_tensors


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
        total = rows_in(texts)
        texts = map_tensors(texts, ranks.own_rows)
    with (
        torch.autocast(scorer.device.type, torch.bfloat16) if low else nullcontext(),
        sharing_texts() if ranks and not by_rows else nullcontext(),
    ):
        embeddings = encode_in_parts(scorer, pixels, recipe.accumulate), scorer.encode_texts(texts)
    images, embedding = (map_tensors(embedding, to_float32) for embedding in embeddings) if low else embeddings
    if by_rows:
        embedding = gather_embedding(ranks, embedding, rows_in(texts), total)
    if ranks and scorer.sharing.images == "gathered":
        images = gather_embedding(ranks, images, len(pixels), len(pixels) * ranks.share.count)
    return images, embedding


def rows_in(embedding: Tensors) -> int:
    """Number of rows of an embedding's tensors."""
    return len(next(leaves(embedding)))


def gather_embedding(ranks: Ranks, embedding: Tensors, own: int, total: int) -> Tensors:
    """Return all `total` rows of an embedding, of which this process has `own`; raises if a tensor has another
    number."""
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

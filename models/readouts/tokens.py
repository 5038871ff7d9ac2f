"""What a read-out reads: the tokens of a tower, and which of them there are."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from menagerie.models.towers.build import unpooled_tokens


class Tokens(NamedTuple):
    """The tokens of n images or texts."""

    states: Float[Tensor, "n t width"]
    """What the tower's last LayerNorm gives, or its last block; of an image CLS first, of a text all up to its end and
    the padding."""
    present: Bool[Tensor, "n t"] | None
    """Those up to the end of a text: padding says nothing. None where all are."""
    pooled: Float[Tensor, "n width"]
    """The one that CLIP itself reads: CLS, or the end of the text."""


def widths(model: nn.Module) -> tuple[int, int]:
    """The widths of the image tower's and of the text tower's tokens."""
    return model.visual.class_embedding.numel(), model.token_embedding.embedding_dim


def image_tokens(model: nn.Module, pixels: Float[Tensor, "n 3 h w"], normed: bool = True) -> Tokens:
    """The tokens of images, from a plain CLIP of open_clip: after the tower's last LayerNorm, or before it."""
    states = unpooled_tokens(model.visual, pixels)
    states = model.visual.ln_post(states) if normed else states
    return Tokens(states, None, states[:, 0])


def text_tokens(model: nn.Module, ids: Int64[Tensor, "m context"]) -> Tokens:
    """The tokens of texts: later ones, their padding among them, are hidden from each by the tower's causal mask."""
    layers = model.forward_intermediates(
        text=ids, text_indices=1, normalize_intermediates=True, intermediates_only=True
    )
    states, ends = layers["text_intermediates"][0], ends_of(ids, end_token(model))
    places = torch.arange(ids.shape[1], device=ids.device)
    return Tokens(states, places <= ends[:, None], states[torch.arange(len(ids), device=ids.device), ends])


def end_token(model: nn.Module) -> int | None:
    """The id that ends a text, where an architecture names one; None: it is the largest."""
    return model.text_eos_id if getattr(model, "text_pool_type", "argmax") == "eos" else None


def ends_of(ids: Int64[Tensor, "m context"], end: int | None) -> Int64[Tensor, " m"]:
    """Where texts end: the first token of an id, or of the largest."""
    return ids.argmax(-1) if end is None else (ids == end).int().argmax(-1)


def attention_shares(
    logits: Float[Tensor, "n *slots t"], present: Bool[Tensor, "n t"] | None
) -> Float[Tensor, "n *slots t"]:
    """Softmax over the tokens that there are."""
    if present is not None:
        hidden = ~present.view(len(present), *[1] * (logits.ndim - 2), present.shape[1])
        logits = logits.masked_fill(hidden, -torch.inf)
    return logits.softmax(-1)


def slot_vector(slots: Float[Tensor, "n l v"]) -> Float[Tensor, "n lv"]:
    """Slots of length 1 each, one behind the other, divided by sqrt(l): a unit vector, and the product of two such
    vectors is the mean over slots of their cosines (SPARO, equation 2)."""
    return F.normalize(slots, dim=-1).flatten(1) / math.sqrt(slots.shape[1])


def drop_last_block(transformer: nn.Module) -> None:
    """Take a tower's last block away, unless it is the only one."""
    if len(transformer.resblocks) > 1:
        transformer.resblocks = transformer.resblocks[:-1]


@torch.no_grad()
def drop_last_drawn_block(transformer: nn.Module) -> None:
    """The same for a text tower from scratch, which is then as if it had been built with one block fewer: open_clip
    draws what a block adds to the stream with a deviation of width^-1/2 (2 blocks)^-1/2."""
    before = len(transformer.resblocks)
    drop_last_block(transformer)
    for block in transformer.resblocks:
        for projection in (block.attn.out_proj, block.mlp.c_proj):
            projection.weight.mul_(math.sqrt(before / len(transformer.resblocks)))

"""Self-attention of open_clip's blocks, with fewer copies.

`torch.nn.MultiheadAttention` puts positions before samples, and copies queries, keys and values. That costs most with
small towers on a CPU.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class SelfAttention(nn.MultiheadAttention):
    """`nn.MultiheadAttention` that keeps samples first.

    In training, outputs are the same to the bit, and gradients of weights differ by rounding, because they are summed
    in another order. Without gradients outputs differ by rounding, because torch runs other code in evaluation.
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        **others: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output, and weights where they are asked for. What open_clip's blocks don't ask for, such as
        attention to other tokens, is left to torch."""
        plain = query is key is value and query.ndim == 3 and key_padding_mask is None and not (need_weights or others)
        boolean = attn_mask is not None and attn_mask.dtype is torch.bool  # true where torch hides a key
        if not plain or boolean or (self.dropout and self.training):
            return super().forward(query, key, value, key_padding_mask, need_weights, attn_mask, **others)
        three = F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        if attn_mask is not None and attn_mask.ndim == 3:  # one for each sample and head
            attn_mask = attn_mask.unflatten(0, (-1, self.num_heads))
        heads = (split_heads(part, self.num_heads) for part in three)
        taken = F.scaled_dot_product_attention(*heads, attn_mask=attn_mask)
        return self.out_proj(merge_heads(taken)), None


def with_fewer_copies(model: nn.Module) -> None:
    """Make each `nn.MultiheadAttention` that can attend from a batch's tokens to themselves a `SelfAttention`. Weights
    and their names stay."""
    for module in model.modules():
        plain = type(module) is nn.MultiheadAttention and module.batch_first and module.in_proj_weight is not None
        if plain and module.bias_k is None and not module.add_zero_attn:  # nothing is added to the keys
            module.__class__ = SelfAttention


def as_in_torch(model: nn.Module) -> None:
    """Undo `with_fewer_copies`."""
    for module in model.modules():
        if type(module) is SelfAttention:
            module.__class__ = nn.MultiheadAttention


def split_heads(states: Float[Tensor, "n t w"], heads: int) -> Float[Tensor, "n h t d"]:
    """Divide vectors among heads."""
    return states.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(states: Float[Tensor, "n h t d"]) -> Float[Tensor, "n t w"]:
    """Undo `split_heads`."""
    return states.transpose(1, 2).flatten(2)

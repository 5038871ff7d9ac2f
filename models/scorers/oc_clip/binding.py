"""OC-CLIP's binding module: text queries compete for image patches (section 3.1, figure 9)."""

import torch
from jaxtyping import Bool, Float
from open_clip.transformer import ResidualAttentionBlock
from torch import Tensor, nn

from menagerie.models.scorers.oc_clip.spec import OCCLIPConfig

# Keeps a query that no patch chose from dividing by zero (figure 9). Vanishes in half precision.
EPSILON = 1e-8


class BindingModule(nn.Module):
    """Patches to keys and values; phrases to queries; queries and patches to visual slots.

    Sizes and layers as in table 11. Table 11 also normalises the queries, figure 9 does not:
    `config.query_norm` decides.
    """

    def __init__(self, patch_width: int, n_patches: int, config: OCCLIPConfig) -> None:
        super().__init__()
        self.dim = dim = config.dim
        self.patch_mlp = nn.Sequential(nn.Linear(patch_width, dim), nn.GELU(), nn.Linear(dim, dim))
        self.positions = nn.Parameter(config.position_scale * torch.randn(n_patches, dim))
        blocks = (ResidualAttentionBlock(dim, config.heads, mlp_ratio=2.0) for _ in range(config.layers))
        self.self_attention = nn.Sequential(*blocks)
        self.to_keys_values = nn.Linear(dim, 2 * dim)
        self.key_norm = nn.LayerNorm(dim)
        self.value_norm = nn.LayerNorm(dim)
        self.query_norm = nn.LayerNorm(dim) if config.query_norm else nn.Identity()
        self.default_tokens = nn.Parameter(torch.randn(config.default_tokens, dim))
        self.to_query = nn.Linear(dim, dim, bias=False)
        self.to_key = nn.Linear(dim, dim, bias=False)
        self.to_value = nn.Linear(dim, dim, bias=False)

    def encode_patches(
        self, patches: Float[Tensor, "n p width"]
    ) -> tuple[Float[Tensor, "n p d"], Float[Tensor, "n p d"]]:
        """Keys and values of every patch; they do not depend on any text."""
        x = self.self_attention(self.patch_mlp(patches) + self.positions)
        keys, values = self.to_keys_values(x).split(self.dim, dim=-1)
        return self.to_key(self.key_norm(keys)), self.to_value(self.value_norm(values))

    def phrase_logits(
        self, phrases: Float[Tensor, "u d"], keys: Float[Tensor, "n p d"]
    ) -> tuple[Float[Tensor, "n u p"], Float[Tensor, "n default p"]]:
        """Scaled dot products of all phrases, and of the default tokens, with all patches."""
        queries = self.to_query(self.query_norm(torch.cat([phrases, self.default_tokens])))
        logits = torch.einsum("qd,npd->nqp", queries * self.dim**-0.5, keys)
        return logits[:, : len(phrases)], logits[:, len(phrases) :]


def full_precision(tensor: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """At least float32: half precision loses `EPSILON` and small shares."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def competitive_attention(
    logits: Float[Tensor, "... m p"], present: Bool[Tensor, "... m #p"], default_logits: Float[Tensor, "... default p"]
) -> Float[Tensor, "... m p"]:
    """Softmax over the queries of a text and the default tokens (OC-CLIP, equation 1).

    The default tokens' shares are left out of the result, so at each patch it sums to at
    most one. Absent (padding) queries take nothing.
    """
    logits = full_precision(logits).masked_fill(~present, -torch.inf)
    # All default tokens together are one competitor: theirs is the sum of their exponentials.
    rest = torch.logsumexp(full_precision(default_logits), dim=-2, keepdim=True)
    return torch.cat([logits, rest.expand(*logits.shape[:-2], 1, logits.shape[-1])], dim=-2).softmax(-2)[..., :-1, :]


def regular_attention(logits: Float[Tensor, "... m p"], present: Bool[Tensor, "... m #p"]) -> Float[Tensor, "... m p"]:
    """Softmax over the patches for each query by itself; absent queries take nothing."""
    return full_precision(logits).softmax(-1) * present


def focused_attention(
    logits: Float[Tensor, "... m p"], present: Bool[Tensor, "... m #p"], default_logits: Float[Tensor, "... default p"]
) -> Float[Tensor, "... m p"]:
    """Regular attention of each query, every patch weighted by the query's share of it in the competition.

    Of the patches that the competition leaves to a query those that look like it count most: a thing that no query
    names goes to nobody, where in the competition alone it goes to whoever is least unlike it. Sums to one over the
    patches of a present query. Ours, not the paper's.
    """
    logits, default_logits = full_precision(logits), full_precision(default_logits)
    rest = torch.logsumexp(default_logits, dim=-2, keepdim=True)
    whole = torch.cat([logits.masked_fill(~present, -torch.inf), rest.expand(*logits.shape[:-2], 1, -1)], dim=-2)
    shares = logits - torch.logsumexp(whole, dim=-2, keepdim=True)
    return (logits + shares).softmax(-1) * present


def visual_slots(attention: Float[Tensor, "n *b m p"], values: Float[Tensor, "n p d"]) -> Float[Tensor, "n *b m d"]:
    """Means of an image's values, weighted by each query's share of the patches (figure 9)."""
    weights = attention + EPSILON
    weights = weights / weights.sum(-1, keepdim=True)
    # One product per image: broadcasting `values` over texts would copy them for each.
    slots = weights.flatten(1, -2) @ full_precision(values)
    return slots.unflatten(1, attention.shape[1:-1])

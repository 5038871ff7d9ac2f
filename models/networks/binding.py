"""OC-CLIP's binding module, in which text queries compete for image patches (section 3.1, figure 9), and the structured
similarity between visual slots and a scene graph (section 3.2)."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from menagerie.models.scorers.oc_clip import OCCLIPConfig
from menagerie.models.towers.towers import self_attention

# Avoids division by zero for a query that gets no share of any patch (figure 9). Rounds to zero in half precision.
EPSILON = 1e-8


class BindingModule(nn.Module):
    """Maps patches to keys and values, phrases to queries, and queries and patches to visual slots.

    The default sizes and layers are table 11's. Table 11 also normalises the queries and figure 9 doesn't;
    `config.query_norm` decides.
    """

    def __init__(self, patch_width: int, n_patches: int, config: OCCLIPConfig) -> None:
        super().__init__()
        self.dim = dim = config.dim
        self.patch_mlp = nn.Sequential(nn.Linear(patch_width, dim), nn.GELU(), nn.Linear(dim, dim))
        self.positions = nn.Parameter(config.position_scale * torch.randn(n_patches, dim))
        self.self_attention = self_attention(dim, config.heads, config.layers, mlp_ratio=2.0)
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
        """Keys and values of every patch; independent of any text."""
        x = self.self_attention(self.patch_mlp(patches) + self.positions)
        keys, values = self.to_keys_values(x).split(self.dim, dim=-1)
        return self.to_key(self.key_norm(keys)), self.to_value(self.value_norm(values))

    def phrase_logits(
        self, phrases: Float[Tensor, "u d"], keys: Float[Tensor, "n p d"]
    ) -> tuple[Float[Tensor, "n u p"], Float[Tensor, "n default p"]]:
        """Scaled dot products of all phrases, and of the default tokens, with all patches."""
        logits = torch.einsum("qd,npd->nqp", self.queries(phrases), keys)
        return logits[:, : len(phrases)], logits[:, len(phrases) :]

    def own_logits(
        self, phrases: Float[Tensor, "u d"], nodes: Int64[Tensor, "n m"], keys: Float[Tensor, "n p d"]
    ) -> tuple[Float[Tensor, "n m p"], Float[Tensor, "n default p"]]:
        """Scaled dot products of each image's own phrases, given by number, and of the default tokens, with the image's
        patches."""
        queries = self.queries(phrases)
        own, default = queries[nodes], queries[len(phrases) :]
        return own @ keys.transpose(1, 2), torch.einsum("qd,npd->nqp", default, keys)

    def queries(self, phrases: Float[Tensor, "u d"]) -> Float[Tensor, "q d"]:
        """The scaled queries of phrases, then those of the default tokens."""
        return self.to_query(self.query_norm(torch.cat([phrases, self.default_tokens]))) * self.dim**-0.5


def full_precision(tensor: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """Convert a tensor to float32; float64 stays. Half precision would lose `EPSILON` and small shares."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def competitive_attention(
    logits: Float[Tensor, "... m p"], present: Bool[Tensor, "... m #p"], default_logits: Float[Tensor, "... default p"]
) -> Float[Tensor, "... m p"]:
    """Softmax over the queries of a text and the default tokens (OC-CLIP, equation 1).

    The default tokens' shares aren't returned, so the shares of a patch sum to at most one. Absent (padding) queries
    get none.
    """
    logits = full_precision(logits).masked_fill(~present, -torch.inf)
    # All default tokens together are one competitor, with the sum of their exponentials.
    rest = torch.logsumexp(full_precision(default_logits), dim=-2, keepdim=True)
    return torch.cat([logits, rest.expand(*logits.shape[:-2], 1, logits.shape[-1])], dim=-2).softmax(-2)[..., :-1, :]


def regular_attention(logits: Float[Tensor, "... m p"], present: Bool[Tensor, "... m #p"]) -> Float[Tensor, "... m p"]:
    """Softmax over the patches, for each query by itself; absent queries get zeros."""
    return full_precision(logits).softmax(-1) * present


def focused_attention(
    logits: Float[Tensor, "... m p"], present: Bool[Tensor, "... m #p"], default_logits: Float[Tensor, "... default p"]
) -> Float[Tensor, "... m p"]:
    """Regular attention of each query, with every patch weighted by the query's share of it in the competition.

    Among the patches that a query wins, those similar to it count most. So no query absorbs objects that the text
    doesn't name; in the competition alone, the closest phrase absorbs them. A present query's weights sum to one over
    the patches. Ours, not the paper's.
    """
    logits, default_logits = full_precision(logits), full_precision(default_logits)
    rest = torch.logsumexp(default_logits, dim=-2, keepdim=True)
    whole = torch.cat([logits.masked_fill(~present, -torch.inf), rest.expand(*logits.shape[:-2], 1, -1)], dim=-2)
    shares = logits - torch.logsumexp(whole, dim=-2, keepdim=True)
    return (logits + shares).softmax(-1) * present


def visual_slots(attention: Float[Tensor, "n *b m p"], values: Float[Tensor, "n p d"]) -> Float[Tensor, "n *b m d"]:
    """Means of an image's values, weighted by each query's shares of the patches (figure 9)."""
    weights = attention + EPSILON
    weights = weights / weights.sum(-1, keepdim=True)
    # One product per image: broadcasting `values` over texts would copy them for each text.
    slots = weights.flatten(1, -2) @ full_precision(values)
    return slots.unflatten(1, attention.shape[1:-1])


class RelationScorer(nn.Module):
    """Scores a relation between two slots: cosine(r, f_s([r, S_s]) + f_o([r, S_o])) with two-layer MLPs (equation 3,
    table 11)."""

    def __init__(self, relation_dim: int, slot_dim: int) -> None:
        super().__init__()
        self.subject = relation_mlp(relation_dim, slot_dim)
        self.object = relation_mlp(relation_dim, slot_dim)

    def forward(
        self, relation: Float[Tensor, "*b r"], subject: Float[Tensor, "*b d"], object_: Float[Tensor, "*b d"]
    ) -> Float[Tensor, "*b"]:
        """Score two slots as subject and object of the relation, between -1 and 1."""
        predicted = self.subject(torch.cat([relation, subject], -1)) + self.object(torch.cat([relation, object_], -1))
        return F.cosine_similarity(relation, predicted, dim=-1)


class JointRelationScorer(nn.Module):
    """Scores a relation between two slots by one MLP for both: cosine(r, f([r, S_s, S_o])), "+ MLP relation" of table
    7."""

    def __init__(self, relation_dim: int, slot_dim: int) -> None:
        super().__init__()
        self.both = relation_mlp(relation_dim, 2 * slot_dim)

    def forward(
        self, relation: Float[Tensor, "*b r"], subject: Float[Tensor, "*b d"], object_: Float[Tensor, "*b d"]
    ) -> Float[Tensor, "*b"]:
        """Score two slots as subject and object of the relation, between -1 and 1."""
        return F.cosine_similarity(relation, self.both(torch.cat([relation, subject, object_], -1)), dim=-1)


RELATION_SCORERS: dict[str, type[nn.Module]] = {"additive": RelationScorer, "joint": JointRelationScorer}


def relation_mlp(relation_dim: int, slot_dim: int) -> nn.Sequential:
    """Make an MLP from a relation and `slot_dim` numbers of slots to a vector of the relation's width."""
    return nn.Sequential(
        nn.Linear(relation_dim + slot_dim, relation_dim), nn.GELU(), nn.Linear(relation_dim, relation_dim)
    )


def structured_similarity(
    objects: Float[Tensor, "*b m"],
    node_present: Bool[Tensor, "*#b m"],
    relations: Float[Tensor, "*b e"],
    edge_present: Bool[Tensor, "*#b e"],
    alpha: Float[Tensor, ""],
    beta: Float[Tensor, ""],
) -> Float[Tensor, "*b"]:
    """The score of a graph: (alpha sum_nodes + beta sum_edges) / (alpha M + beta P)  (equation 2).

    If no graph of the batch has edges, alpha cancels exactly and is left out, because its gradient by the full formula
    would be rounding noise, which Adam scales up to full steps.
    """
    nodes = (objects * node_present).sum(-1)
    n_nodes = node_present.sum(-1)
    if relations.shape[-1] == 0:
        return nodes / n_nodes
    edges = (relations * edge_present).sum(-1)
    return (alpha * nodes + beta * edges) / (alpha * n_nodes + beta * edge_present.sum(-1))

"""OC-CLIP's structured similarity between visual slots and a scene graph (section 3.2)."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn


class RelationScorer(nn.Module):
    """cosine(r, f_s([r, S_s]) + f_o([r, S_o])) with two-layer MLPs (equation 3, table 11)."""

    def __init__(self, relation_dim: int, slot_dim: int) -> None:
        super().__init__()
        self.subject = relation_mlp(relation_dim, slot_dim)
        self.object = relation_mlp(relation_dim, slot_dim)

    def forward(
        self, relation: Float[Tensor, "*b r"], subject: Float[Tensor, "*b d"], object_: Float[Tensor, "*b d"]
    ) -> Float[Tensor, "*b"]:
        """How well the two slots fit the relation, within -1 and 1."""
        predicted = self.subject(torch.cat([relation, subject], -1)) + self.object(torch.cat([relation, object_], -1))
        return F.cosine_similarity(relation, predicted, dim=-1)


class JointRelationScorer(nn.Module):
    """cosine(r, f([r, S_s, S_o])): "+ MLP relation" of table 7, in which both slots meet."""

    def __init__(self, relation_dim: int, slot_dim: int) -> None:
        super().__init__()
        self.both = relation_mlp(relation_dim, 2 * slot_dim)

    def forward(
        self, relation: Float[Tensor, "*b r"], subject: Float[Tensor, "*b d"], object_: Float[Tensor, "*b d"]
    ) -> Float[Tensor, "*b"]:
        """How well the two slots fit the relation, within -1 and 1."""
        return F.cosine_similarity(relation, self.both(torch.cat([relation, subject, object_], -1)), dim=-1)


RELATION_SCORERS: dict[str, type[nn.Module]] = {"additive": RelationScorer, "joint": JointRelationScorer}


def relation_mlp(relation_dim: int, slot_dim: int) -> nn.Sequential:
    """MLP(relation + slots -> relation)."""
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
    """(alpha sum_nodes + beta sum_edges) / (alpha M + beta P)  (equation 2).

    Without any edge alpha cancels exactly, and is left out: computed, its gradient would be
    rounding noise, which Adam scales up to full steps.
    """
    nodes = (objects * node_present).sum(-1)
    n_nodes = node_present.sum(-1)
    if relations.shape[-1] == 0:
        return nodes / n_nodes
    edges = (relations * edge_present).sum(-1)
    return (alpha * nodes + beta * edges) / (alpha * n_nodes + beta * edge_present.sum(-1))

"""OC-CLIP, as studies know it; free of torch."""

from dataclasses import dataclass

from models.recipe import Recipe


@dataclass(frozen=True)
class OCCLIPConfig:
    """Sizes and choices of OC-CLIP; defaults are table 11's."""

    dim: int = 256
    """Width of patches, queries and slots in the binding module."""
    relation_dim: int = 128
    """Width of relation embeddings."""
    relation: str = "additive"
    """How subject and object meet a relation: additive (equation 3), or joint, the single MLP of table 7."""
    alpha: float = 1.5
    """Where the weight of the nodes in equation 2 starts."""
    beta: float = 0.5
    """Where the weight of the edges starts."""
    layers: int = 2
    """Self-attention layers over the patches."""
    heads: int = 4
    """Heads of those layers."""
    competitive: bool = True
    """Queries compete for each patch (equation 1); False: each spreads over the patches by itself, the
    regular cross-attention of the paper's ablation, in which default tokens have no part."""
    default_tokens: int = 4
    """Queries that take what the caption doesn't mention."""
    query_norm: bool = True
    """Normalise the queries (table 11 does, figure 9 doesn't)."""
    position_scale: float = 0.02
    """Standard deviation of the position embeddings at the start. Figure 9 has 1, which from
    scratch drowns the patches."""
    context: int = 20
    """Tokens of a phrase when trained from scratch (table 9)."""
    logit_scale: float = 1 / 0.07
    """Where the learned inverse temperature starts; equation 5 has none, and without one
    similarities within -1 and 1 can't tell a batch apart."""


# Pretrained towers: appendix A.8 for OC-CLIP (steps and batch belong to the study)...
OC_CLIP_PRETRAINED = Recipe(
    batch=128,
    learning_rate=2e-4,
    text_learning_rate=2e-5,
    vision_learning_rate=1e-6,
    warmup=0,
    text_warmup=1000,
    vision_warmup=5000,
    weight_decay=0.2,
    betas=(0.9, 0.95),
)

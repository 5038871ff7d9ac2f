"""Read-outs of the tokens of both towers: attentional pooling, variants between it and SPARO (Vani et al. 2024, table
6), and a linear bottleneck (table 0.B.2).

AttPool is multi-head attention with one learned query: the heads' outputs are mixed by a linear map, normalised as one
vector and projected as one. Each of the three steps can keep the heads apart instead. The authors' fork of open_clip
also projects queries. We don't, because a linear map of a learned vector adds nothing, and without it parameter counts
match table 6.

Initial values are as in that fork: keys, values and the map that mixes heads as in `torch.nn.MultiheadAttention`, the
projection of all heads as CLIP's (no bias). The projection per head, which the fork doesn't have, starts as SPARO's.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from menagerie.models.networks.clip import ReadOutScorer
from menagerie.models.scorers.read_outs import AttPoolConfig, LinearConfig
from menagerie.models.towers.towers import Tokens


class Sizes(NamedTuple):
    """The number of heads and their widths."""

    slots: int
    """L, number of heads."""
    dim: int
    """V, width of a head's value."""
    key_dim: int
    """D, width of a head's query and keys."""


class Separation(NamedTuple):
    """Which steps keep the heads apart."""

    heads: bool
    """Whether there is no linear map that mixes the heads' outputs."""
    norm: bool
    """Whether LayerNorm is applied to each head, with shared weights; else to all heads as one vector."""
    projection: bool
    """Whether one shared projection is applied to each head; else one to all heads together. In the first case each
    slot is then scaled to length 1, as in SPARO; in the second the whole vector is (the paper doesn't describe the
    normalisation)."""


ATTENTIONAL_POOLING = Separation(heads=False, norm=False, projection=False)


class HeadReadOut(nn.Module):
    """Turns tokens into a unit vector of L x V numbers, by L learned queries, each with keys and values of its own."""

    def __init__(self, width: int, sizes: Sizes, apart: Separation) -> None:
        super().__init__()
        self.sizes, self.apart = sizes, apart
        whole = sizes.slots * sizes.dim
        self.queries = nn.Parameter(torch.randn(sizes.slots * sizes.key_dim))
        self.query_norm = nn.LayerNorm(sizes.slots * sizes.key_dim)
        self.keys = nn.Linear(width, sizes.slots * sizes.key_dim)
        self.values = nn.Linear(width, whole)
        self.mix = nn.Identity() if apart.heads else nn.Linear(whole, whole)
        self.norm = nn.LayerNorm(sizes.dim if apart.norm else whole)
        self.projection = nn.Linear(sizes.dim, sizes.dim) if apart.projection else nn.Linear(whole, whole, bias=False)
        self.start(width)

    def start(self, width: int) -> None:
        """Initialise the parameters that don't start as a linear layer's."""
        for part in (self.keys, self.values):
            nn.init.xavier_uniform_(part.weight)
        if not self.apart.projection:
            nn.init.normal_(self.projection.weight, std=width**-0.5)
        for part in (self.keys, self.values, self.mix, self.projection):
            if getattr(part, "bias", None) is not None:
                nn.init.zeros_(part.bias)

    def attention(self, tokens: Tokens) -> Float[Tensor, "n l t"]:
        """The attention weights of every head over the tokens."""
        keys = self.keys(tokens.states).unflatten(-1, (self.sizes.slots, self.sizes.key_dim))
        queries = self.query_norm(self.queries).view(self.sizes.slots, self.sizes.key_dim)
        logits = torch.einsum("ld,ntld->nlt", queries * self.sizes.key_dim**-0.5, keys)
        return attention_shares(logits, tokens.present)

    def forward(self, tokens: Tokens) -> Float[Tensor, "n lv"]:
        """Unit vectors."""
        values = self.values(tokens.states).unflatten(-1, (self.sizes.slots, self.sizes.dim))
        heads = torch.einsum("nlt,ntlv->nlv", self.attention(tokens), values)
        mixed = heads if self.apart.heads else self.mix(heads.flatten(1)).view_as(heads)
        normed = self.norm(mixed) if self.apart.norm else self.norm(mixed.flatten(1)).view_as(heads)
        if self.apart.projection:
            return slot_vector(self.projection(normed))
        return F.normalize(self.projection(normed.flatten(1)), dim=-1)


class AttPoolScorer(ReadOutScorer):
    """CLIP with attentional pooling in place of CLS and end token, as in SPARO's fork of open_clip."""

    config_class = AttPoolConfig

    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """Make an attentional pooling for each tower."""
        sizes = Sizes(self.config.heads, self.config.head_dim, self.config.head_dim)
        widths = self.towers.image.width, self.towers.text.width
        return tuple(HeadReadOut(width, sizes, ATTENTIONAL_POOLING) for width in widths)


class LinearBottleneck(nn.Module):
    """Maps CLS or the end token to `narrow` numbers and from there to `wide`, linearly.

    The first map replaces the tower's projection (width, d). If d equals `narrow` it starts as that projection, so
    pretrained towers keep theirs; otherwise it is drawn as open_clip draws projections.
    """

    def __init__(self, projection: Float[Tensor, "width d"], narrow: int, wide: int) -> None:
        super().__init__()
        width = len(projection)
        fits = projection.shape[1] == narrow
        self.narrow = nn.Parameter(projection.detach().clone() if fits else width**-0.5 * torch.randn(width, narrow))
        self.wide = nn.Linear(narrow, wide)

    def forward(self, tokens: Tokens) -> Float[Tensor, "n wide"]:
        """Unit vectors."""
        return F.normalize(self.wide(tokens.pooled @ self.narrow), dim=-1)


class LinearScorer(ReadOutScorer):
    """CLIP with a linear bottleneck after CLS and end token."""

    config_class = LinearConfig

    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """Make a bottleneck for each tower."""
        towers = self.towers.image, self.towers.text
        return tuple(LinearBottleneck(tower.projection, self.config.narrow, self.config.wide) for tower in towers)


def attention_shares(
    logits: Float[Tensor, "n *slots t"], present: Bool[Tensor, "n t"] | None
) -> Float[Tensor, "n *slots t"]:
    """Softmax over the tokens that are present."""
    if present is not None:
        hidden = ~present.view(len(present), *[1] * (logits.ndim - 2), present.shape[1])
        logits = logits.masked_fill(hidden, -torch.inf)
    return logits.softmax(-1)


def slot_vector(slots: Float[Tensor, "n l v"]) -> Float[Tensor, "n lv"]:
    """Normalise each slot, concatenate them and divide by sqrt(l): a unit vector. The product of two such vectors is
    the mean of their slots' cosines (SPARO, equation 2)."""
    return F.normalize(slots, dim=-1).flatten(1) / math.sqrt(slots.shape[1])

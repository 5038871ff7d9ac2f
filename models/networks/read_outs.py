"""Read-outs of the tokens of both towers: attentional pooling, variants between it and SPARO (Vani et al. 2024, table
6), and a linear bottleneck (table 0.B.2).

AttPool is multi-head attention with one learned query: the heads' outputs are mixed by a linear map, normalised as one
vector and projected as one. Each of the three steps can keep the heads apart instead. The authors' fork of open_clip
also projects queries. We don't, because a linear map of a learned vector adds nothing, and without it parameter counts
match table 6.

Initial values are as in that fork: keys, values and the map that mixes heads as in `torch.nn.MultiheadAttention`, the
projection of all heads as CLIP's (no bias). The projection per head, which the fork doesn't have, starts as SPARO's.

SPARO (Vani et al. 2024, section 3 and appendix A): a read-out of L slots with separate attention.

Slot l: a_l = softmax over tokens of H K_l^T q_l / sqrt(D), and y_l = W K_l H^T a_l. The keys serve as values, too. All
slots of a tower share W; each tower has its own. Equation 1 leaves out the biases of K and W, which the authors' code
has. There is no output projection, MLP or LayerNorm after it.

Unlike in the authors' fork of open_clip, the read-out works with any tokenizer, encodings are always normalised, and
the unused projections are removed.

Finite discrete tokens (FDT; Chen et al. 2023): an image or a text as a sparse mean of learned codes, which both
share.

Where we differ from the published code, and why:
- Padding is left out of the maximum over tokens. The published code multiplies the scores of padding by 0, so that each
  maximum is at least 0.
- The temperature is an option, by default a tenth of the published 1000, which stays constant (it is meant to decay,
  but by a factor of 1). With 1000 an input starts with thousands of codes (3300 of 16384 on ViT-B/32; 470 with our
  default), and with nearly all codes of a small codebook; then all inputs have nearly the same vector.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.models.networks.clip import ReadOutScorer
from menagerie.models.scorers.read_outs import AttPoolConfig, FDTConfig, LinearConfig, SPAROConfig
from menagerie.models.towers.features import Layer
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


class SPARO(nn.Module):
    """Turns tokens into a unit vector: L slots of V numbers, each scaled to length 1 and divided by sqrt(L).

    `group` slots share one K, each with its own query. Queries start as N(0, 1), K Xavier-uniform, W as linear layers
    do, biases at 0. Weight decay applies to queries, as in the authors' runs, whose decay was tuned that way.
    """

    def __init__(self, width: int, sizes: Sizes, group: int = 1) -> None:
        super().__init__()
        if group < 1 or sizes.slots % group:
            raise UserError(f"{sizes.slots} slots can't be in groups of {group} that share keys; choose a divisor")
        self.keys_of_slots = sizes.slots // group, sizes.key_dim
        self.queries = nn.Parameter(torch.randn(sizes.slots // group, group, sizes.key_dim))
        self.keys = nn.Linear(width, sizes.slots // group * sizes.key_dim)
        self.values = nn.Linear(sizes.key_dim, sizes.dim)
        nn.init.xavier_uniform_(self.keys.weight)
        nn.init.zeros_(self.keys.bias)
        nn.init.zeros_(self.values.bias)

    def attention(self, tokens: Tokens) -> Float[Tensor, "n l t"]:
        """The attention weights of every slot over the tokens."""
        return self._shares(self._keys(tokens), tokens).flatten(1, 2)

    def forward(self, tokens: Tokens) -> Float[Tensor, "n lv"]:
        """Unit vectors."""
        keys = self._keys(tokens)
        attended = torch.einsum("ngst,ntgd->ngsd", self._shares(keys, tokens), keys)
        return slot_vector(self.values(attended.flatten(1, 2)))

    def _keys(self, tokens: Tokens) -> Float[Tensor, "n t groups d"]:
        return self.keys(tokens.states).unflatten(-1, self.keys_of_slots)

    def _shares(self, keys: Float[Tensor, "n t groups d"], tokens: Tokens) -> Float[Tensor, "n groups group t"]:
        logits = torch.einsum("gsd,ntgd->ngst", self.queries * keys.shape[-1] ** -0.5, keys)
        return attention_shares(logits, tokens.present)


class SPAROScorer(ReadOutScorer):
    """CLIP with L slots of V numbers for each image and each caption, in one unit vector. The similarity is the mean of
    the slots' cosines, except in variants that project all slots as one vector."""

    capabilities = frozenset({"slots"})
    config_class = SPAROConfig

    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """Make a read-out for each tower; it replaces the last block if the config says so."""
        image, text = self.towers.image, self.towers.text
        if self.config.replace_block:
            image.drop_last_block()  # the remaining blocks start the same, whatever their number
            text.drop_last_block(drawn=not self.towers_config.pretrained)
        return tuple(read_out(tower.width, self.config) for tower in (image, text))

    def image_parts(self, embedding: Float[Tensor, "n lv"], tokens: Layer | None) -> dict[str, Layer]:
        """The slots (n, l, v); none in variants that project all slots as one vector."""
        if self.config.attention != "sparo" and not self.config.slot_projection:
            return {}
        return {"slots": Layer(embedding.unflatten(1, (self.config.slots, self.config.dim)))}

    def text_parts(self, embedding: Float[Tensor, "m lv"], tokens: Layer | None) -> dict[str, Layer]:
        """The slots (m, l, v), as for images."""
        return self.image_parts(embedding, tokens)

    def image_attention(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n l t"]:
        """The weights of every slot over CLS and patches."""
        return self.image_read_out.attention(self.towers.image.tokens(pixels))

    def text_attention(self, texts: Int64[Tensor, "m context"]) -> Float[Tensor, "m l context"]:
        """The weights of every slot over tokens; 0 after a text's end."""
        return self.text_read_out.attention(self.towers.text.tokens(texts))


def read_out(width: int, config: SPAROConfig) -> nn.Module:
    """Make SPARO's read-out, or one of the variants in table 6."""
    sizes = Sizes(config.slots, config.dim, config.key_dim)
    if config.attention == "sparo":
        return SPARO(width, sizes, config.group)
    apart = Separation(config.attention == "separate", config.slot_norm, config.slot_projection)
    return HeadReadOut(width, sizes, apart)


class CodeReadOut(nn.Module):
    """Turns the tokens of one tower into a sparse mean of codes."""

    def __init__(self, width: int, dim: int, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature
        self.to_query = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, dim), nn.GELU(), nn.LayerNorm(dim), nn.Linear(dim, dim)
        )

    def weights(self, tokens: Tokens, codes: Float[Tensor, "k d"]) -> Float[Tensor, "n k"]:
        """The weight of each code: sparsemax of its best score with any token; most are 0."""
        queries = self.to_query(tokens.states)
        scores = queries @ codes.T * codes.shape[1] ** -0.5
        if tokens.present is not None:
            scores = scores.masked_fill(~tokens.present[..., None], -torch.inf)
        return sparsemax(scores.amax(1) / self.temperature)

    def forward(self, tokens: Tokens, codes: Float[Tensor, "k d"]) -> Float[Tensor, "n d"]:
        """Unit vectors of the means of codes."""
        return F.normalize(self.weights(tokens, codes) @ codes, dim=-1)


class FDTScorer(ReadOutScorer):
    """The scorer FDT. It uses the patches from the image tower's last block, without CLS, and words after the text
    tower's last LayerNorm."""

    config_class = FDTConfig

    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """Make the modules that weight codes, one for each tower, and the codes, which both share."""
        self.towers.image.drop_norm()  # its output isn't used
        self.codes = nn.Parameter(torch.randn(self.config.codes, self.config.dim))
        widths = self.towers.image.width, self.towers.text.width
        return tuple(CodeReadOut(width, self.config.dim, self.config.temperature) for width in widths)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Unit vectors of the images."""
        tokens = self.towers.image.tokens(pixels, normed=False)
        return self.image_read_out(tokens._replace(states=tokens.states[:, 1:]), self.codes)

    def encode_texts(self, texts: Int64[Tensor, "m context"]) -> Float[Tensor, "m d"]:
        """Unit vectors of the captions."""
        return self.text_read_out(self.towers.text.tokens(texts), self.codes)

    def image_parts(self, embedding: Float[Tensor, "n d"], tokens: Layer | None) -> dict[str, Layer]:
        """The weights of the codes (n, 1, k)."""
        return {"weights": Layer(self.weights(self.image_read_out, tokens._replace(states=tokens.states[:, 1:])))}

    def text_parts(self, embedding: Float[Tensor, "m d"], tokens: Layer | None) -> dict[str, Layer]:
        """The weights of the codes (m, 1, k)."""
        return {"weights": Layer(self.weights(self.text_read_out, tokens))}

    def weights(self, read_out: CodeReadOut, tokens: Layer) -> Float[Tensor, "n 1 k"]:
        """The weights that a read-out gives the codes. It doesn't use the pooled token, so any token stands for it."""
        return read_out.weights(Tokens(*tokens, pooled=tokens.states[:, 0]), self.codes)[:, None]


def sparsemax(scores: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """Project scores onto the simplex (Martins and Astudillo 2016): subtract a threshold and clip at 0, so that each
    row sums to 1."""
    ordered = scores.sort(-1, descending=True).values
    excess = ordered.cumsum(-1) - 1
    ranks = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
    support = (ranks * ordered > excess).sum(-1, keepdim=True)
    return (scores - excess.gather(-1, support - 1) / support).clamp_min(0)

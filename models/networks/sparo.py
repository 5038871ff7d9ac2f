"""SPARO (Vani et al. 2024, section 3 and appendix A): a read-out of L slots with separate attention.

Slot l: a_l = softmax over tokens of H K_l^T q_l / sqrt(D), and y_l = W K_l H^T a_l. The keys serve as values, too. All
slots of a tower share W; each tower has its own. Equation 1 leaves out the biases of K and W, which the authors' code
has. There is no output projection, MLP or LayerNorm after it.

Unlike in the authors' fork of open_clip, the read-out works with any tokenizer, encodings are always normalised, and
the unused projections are removed.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.models.networks.clip import ReadOutScorer
from menagerie.models.networks.read_outs import HeadReadOut, Separation, Sizes, attention_shares, slot_vector
from menagerie.models.scorers.read_outs import SPAROConfig
from menagerie.models.towers.features import Layer
from menagerie.models.towers.towers import Tokens


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

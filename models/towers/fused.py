"""Text towers whose words attend to image tokens: by cross-attention in the blocks or after them, or as a prefix.

A block has self-attention, cross-attention and an MLP. Each reads the stream through a LayerNorm of its own, and its
output is added to the stream (the decoder of Vaswani et al. 2017, section 3.1, with LayerNorms first, as in CapPa).
Cross-attention has no biases, as in CapPa (Tschannen et al. 2023). In a prefix-LM (Dong et al. 2019; SimVLM) image
tokens stand before the words in the same blocks: words see image tokens, image tokens never see a word.

The keys and values of an image (`KeysValues`) are computed once, whatever the number of its texts. Each of n images has
c texts, whose words have the shape (n, c, t, width)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from open_clip.transformer import ResidualAttentionBlock
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.models.towers.attention import merge_heads, split_heads
from menagerie.models.towers.towers import TextTower

Fusion = Literal["early", "late", "prefix"]


class KeysValues(NamedTuple):
    """Keys and values of n images' tokens, in each of b blocks; in late fusion for the only cross-attention (b = 1)."""

    keys: Float[Tensor, "n b heads p d"]
    values: Float[Tensor, "n b heads p d"]


class CrossAttention(nn.Module):
    """Attention from words to image tokens."""

    def __init__(self, width: int, image_width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.query, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.keys_values = nn.Linear(image_width, 2 * width, bias=False)

    def read(self, images: Float[Tensor, "n p v"]) -> tuple[Float[Tensor, "n h p d"], Float[Tensor, "n h p d"]]:
        """Return keys and values of image tokens."""
        keys, values = self.keys_values(images).chunk(2, -1)
        return split_heads(keys, self.heads), split_heads(values, self.heads)

    def forward(
        self, words: Float[Tensor, "n c t w"], keys: Float[Tensor, "n h p d"], values: Float[Tensor, "n h p d"]
    ) -> Float[Tensor, "n c t w"]:
        """Return what the words of each image's c texts get from the image, to be added to the words."""
        queries = split_heads(self.query(self.norm(words)).flatten(1, 2), self.heads)
        taken = F.scaled_dot_product_attention(queries, keys, values)
        return self.out(merge_heads(taken)).reshape(words.shape)


class FusedBlocks(nn.Module):
    """Transformer blocks, of a text tower or others, in which words attend to image tokens.

    - early: each block has cross-attention.
    - late: one cross-attention follows the last block; the blocks themselves never see an image.
    - prefix: the blocks also read the image tokens, before the words.
    """

    def __init__(self, blocks: Sequence[ResidualAttentionBlock], image_width: int, fusion: Fusion) -> None:
        super().__init__()
        self.blocks, self.fusion = tuple(blocks), fusion  # no submodules: they are their owner's
        width, self.heads = blocks[0].attn.embed_dim, blocks[0].attn.num_heads
        count = {"early": len(blocks), "late": 1, "prefix": 0}[fusion]
        self.cross = nn.ModuleList(CrossAttention(width, image_width, self.heads) for _ in range(count))
        self.bring = nn.Linear(image_width, width) if fusion == "prefix" else None

    def read(self, images: Float[Tensor, "n p v"]) -> KeysValues:
        """Compute the keys and values of image tokens to which words attend."""
        if self.bring is None:
            parts = [cross.read(images) for cross in self.cross]
        else:
            parts, states = [], self.bring(images)
            for block in self.blocks:
                _, keys, values = self._heads(block, states)
                parts.append((keys, values))
                states = self._run_block(block, states)
        return KeysValues(*(torch.stack(part, dim=1) for part in zip(*parts, strict=True)))

    def before(self, words: Float[Tensor, "m t w"], hidden: Bool[Tensor, " m"] | None = None) -> Float[Tensor, "m t w"]:
        """Compute the part that needs no image: all blocks if fusion is late, else nothing.

        Words of a `hidden` text see later positions too, so its input must not reveal the words.
        """
        if self.fusion != "late":
            return words
        mask = visible(words.shape[1], hidden, words)
        for block in self.blocks:
            words = self._run_block(block, words, mask)
        return words

    def after(
        self, words: Float[Tensor, "n c t w"], seen: KeysValues, hidden: Bool[Tensor, "n c"] | None = None
    ) -> Float[Tensor, "n c t w"]:
        """Compute the final states of the words of each image's c texts, from the output of `before`."""
        if self.fusion == "late":
            return words + self.cross[0](words, seen.keys[:, 0], seen.values[:, 0])
        n, c = words.shape[:2]
        states = words.flatten(0, 1)
        mask = visible(words.shape[2], None if hidden is None else hidden.flatten(), words)
        for k, block in enumerate(self.blocks):
            keys, values = seen.keys[:, k], seen.values[:, k]
            if self.fusion == "prefix":
                prefix = tuple(x.repeat_interleave(c, 0) for x in (keys, values))
                states = self._attend(block, states, mask, prefix)
            else:
                states = self._attend(block, states, mask)
                states = states + self.cross[k](states.unflatten(0, (n, c)), keys, values).flatten(0, 1)
            states = states + block.ls_2(block.mlp(block.ln_2(states)))
        return states.unflatten(0, (n, c))

    def _run_block(
        self,
        block: ResidualAttentionBlock,
        states: Float[Tensor, "b t w"],
        mask: Bool[Tensor, "*b t t"] | None = None,
    ) -> Float[Tensor, "b t w"]:
        states = self._attend(block, states, mask)
        return states + block.ls_2(block.mlp(block.ln_2(states)))

    def _attend(
        self,
        block: ResidualAttentionBlock,
        states: Float[Tensor, "b t w"],
        mask: Bool[Tensor, "*b t t"] | None = None,
        prefix: tuple[Tensor, ...] = (),
    ) -> Float[Tensor, "b t w"]:
        """Return the stream after a block's self-attention; all words see the keys and values of a prefix."""
        queries, keys, values = self._heads(block, states)
        if prefix:
            keys, values = (torch.cat(pair, dim=2) for pair in zip(prefix, (keys, values), strict=True))
            mask = F.pad(mask, (prefix[0].shape[2], 0), value=True)
        taken = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return states + block.ls_1(block.attn.out_proj(merge_heads(taken)))

    def _heads(
        self, block: ResidualAttentionBlock, states: Float[Tensor, "b t w"]
    ) -> tuple[Float[Tensor, "b h t d"], ...]:
        """Queries, keys and values of a block's self-attention."""
        three = F.linear(block.ln_1(states), block.attn.in_proj_weight, block.attn.in_proj_bias).chunk(3, -1)
        return tuple(split_heads(part, self.heads) for part in three)


def visible(length: int, hidden: Bool[Tensor, " b"] | None, like: Tensor) -> Bool[Tensor, "*b t t"]:
    """Make the mask of the positions that each position sees: itself and earlier ones, or all in a `hidden` text."""
    causal = torch.ones(length, length, dtype=torch.bool, device=like.device).tril()
    return causal if hidden is None else causal | hidden[:, None, None, None]


def text_blocks(tower: TextTower, scorer: str) -> list[ResidualAttentionBlock]:
    """The blocks of a text tower; raises for towers whose blocks aren't open_clip's plain ones."""
    transformer = tower.model.transformer
    blocks = list(transformer.resblocks)
    if not transformer.batch_first or not all(type(block) is ResidualAttentionBlock for block in blocks):
        raise UserError(f"{scorer} needs open_clip's plain text blocks; choose a ViT such as ViT-B-16")
    return blocks


def embed_words(tower: TextTower, ids: Int64[Tensor, "m t"]) -> Float[Tensor, "m t w"]:
    """Return a text tower's embeddings of words, without positions."""
    return F.embedding(ids, tower.model.token_embedding.weight)  # no pass of the tower, which hooks would see


def add_positions(tower: TextTower, words: Float[Tensor, "m t w"]) -> Float[Tensor, "m t w"]:
    """Words with their positions added."""
    return words + tower.model.positional_embedding[: words.shape[1]]


def final_norm(tower: TextTower, states: Float[Tensor, "*b w"]) -> Float[Tensor, "*b w"]:
    """Apply a text tower's last LayerNorm."""
    return tower.model.ln_final(states)

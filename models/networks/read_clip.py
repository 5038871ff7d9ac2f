"""READ-CLIP (Kwon et al. 2025): CLIP whose text vectors are decoded to other captions of the image, and trained to lie
close to these.

Scores and towers are CLIP's. For an image i, t_i is its caption and u_i another one (`Captioned.several`; for our
scenes, a part of the caption or all of it, in any order). The loss is NegCLIP's (InfoNCE with false captions as further
columns) plus decode_weight D + paraphrase_weight P.

- D is the mean of -log P over all tokens of the u_i but a start token. A causal decoder predicts u_i from the vector
  of t_i alone, as it is before its projection.
- P is the mean over the u_i of the cross-entropy of t_i among all captions t_j of the batch, by scaled cosines. A t_j
  shares the target if it or u_j means the same as u_i. It is left out if u_i is only true of image j.

Where we differ from the published code (JiH00nKw0n/READ-CLIP):

- The decoder is ours, and trained with the rest: blocks with cross-attention to the one vector. It reads words as the
  text tower embeds them, without a gradient, so that gradients reach the tower only by the vector. The authors' decoder
  is a frozen T5.
- u_i may say less than t_i. The authors' is another of COCO's five captions, or a rewritten one.
- Each image has one false caption unless `--text-negatives` says more. In the published code it has three.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.models.networks.clip import CaptionReader, EmbeddedScorer
from menagerie.models.networks.cs_clip import negclip_loss
from menagerie.models.networks.likelihoods import shift_right, token_mask
from menagerie.models.networks.words import TokenBatch, TokenReader, slice_rows
from menagerie.models.objectives import Targets, cross_entropy, target_shares
from menagerie.models.scorer import Sharing
from menagerie.models.scorers.further_texts import ReadCLIPConfig
from menagerie.models.texts import Texts
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.fused import FusedBlocks, add_positions, embed_words
from menagerie.models.towers.towers import self_attention

Read = Int64[Tensor, "m context"] | TokenBatch


@dataclass(frozen=True)
class FurtherReader(TokenReader):
    """Reads captions as token ids; in training as a `TokenBatch`, with another caption of each image."""

    captions: int = 2

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> Read:
        """Return token ids of every caption; in training a `TokenBatch`."""
        return super().__call__(texts, generator) if generator else CaptionReader.__call__(self, texts)


class TextEmbedding(NamedTuple):
    """The embedding of m texts in training."""

    vectors: Float[Tensor, "m d"]
    """Unit vectors."""
    ends: Float[Tensor, "m w"]
    """States of the end tokens, from which the vectors are projected."""
    tokens: TokenBatch


class CaptionDecoder(nn.Module):
    """Predicts each token of a text from the tokens before it and one vector."""

    def __init__(self, width: int, heads: int, layers: int, vocabulary: int) -> None:
        super().__init__()
        self.blocks = self_attention(width, heads, layers, 4.0)
        self.fused = FusedBlocks(tuple(self.blocks), width, "early")
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)
        nn.init.zeros_(self.head.weight)  # so that the first loss is the logarithm of the number of tokens
        nn.init.zeros_(self.head.bias)

    def forward(self, vectors: Float[Tensor, "n w"], words: Float[Tensor, "n t w"]) -> Float[Tensor, "n t v"]:
        """Logits of the token after each word."""
        states = self.fused.after(words[:, None], self.fused.read(vectors[:, None]))
        return self.head(self.norm(states[:, 0]))


class ReadCLIPScorer(EmbeddedScorer):
    """CLIP trained with READ-CLIP's losses."""

    config_class = ReadCLIPConfig
    sharing = Sharing(images="gathered")
    needs = "tokens"

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: ReadCLIPConfig) -> None:
        super().__init__(towers, texts, config)
        tower, tokenizer, self.starts = self.towers.text, self.reader.tokenizer, self.towers.starts
        self.reader = FurtherReader(tokenizer, self.reader.context, tower.end_token)
        heads = tower.model.transformer.resblocks[0].attn.num_heads
        self.decoder = CaptionDecoder(tower.width, heads, self.config.decoder_layers, tokenizer.vocab_size)

    def encode_texts(self, texts: Read) -> Float[Tensor, "m d"] | TextEmbedding:
        """Unit vectors of the captions; in training an embedding that also has what the decoder needs."""
        if isinstance(texts, Tensor):
            return super().encode_texts(texts)
        tower = self.towers.text
        ends = tower.tokens(F.pad(texts.ids, (0, self.texts.context - texts.ids.shape[1]))).pooled
        return TextEmbedding(F.normalize(tower.project(ends), dim=-1), ends, texts)

    def loss(self, images: Float[Tensor, "n d"], texts: TextEmbedding, targets: Targets) -> Float[Tensor, ""]:
        """NegCLIP's loss, plus the weighted D and P of the images' other captions."""
        scale, n, vectors = self.logit_scale(), len(images), texts.vectors
        loss = negclip_loss(images, vectors, targets, 0, scale)
        if targets.matched == n:
            return loss
        other, logits = slice(n, 2 * n), scale * vectors[n : 2 * n] @ vectors[:n].T
        if targets.masked is not None:
            logits = logits.masked_fill(targets.masked[:, other].T, -torch.inf)
        paraphrase = cross_entropy(logits, target_shares(targets.same[:, other].T))
        decoding = self.decoding_loss(texts.ends[:n], slice_rows(texts.tokens, n, 2 * n))
        return loss + self.config.decode_weight * decoding + self.config.paraphrase_weight * paraphrase

    def decoding_loss(self, ends: Float[Tensor, "n w"], tokens: TokenBatch) -> Float[Tensor, ""]:
        """D: the mean of -log P over all `tokens`, which the decoder predicts from the states of the captions' ends."""
        tower = self.towers.text
        words = add_positions(tower, embed_words(tower, shift_right(tokens.ids))).detach()
        each = self.decoder(ends, words).log_softmax(-1).gather(-1, tokens.ids[..., None])[..., 0]
        return -each.masked_fill(~token_mask(tokens, self.starts), 0).sum() / (tokens.length - self.starts).sum()

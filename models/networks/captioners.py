"""A captioner as a scorer, after CapPa (Tschannen et al. 2023): CLIP's towers, with a text tower that predicts each
word.

The text tower's blocks read the words before each word and see the image (`menagerie.models.towers.fused`); a linear
head gives log P of each token. Scores, priors and loss: `menagerie.models.networks.likelihoods`.

`parallel` is CapPa's parallel prediction: for that share of captions all inputs are one learned token, every position
sees every other, and the loss is the same (section 3.1; per caption, as in the published code). Scores are always
computed word by word.

Where we differ from the published code (google-research/big_vision, models/proj/cappa), with sizes in docs/scorers.md:

- The loss is a mean over all tokens of a batch; CapPa's, a mean over captions of each one's mean, is `average`
  "captions". Scores are divided by the number of tokens; CapPa's sum is `per_token` false.
- The decoder is CLIP's text tower (its depth, its learned positions), where CapPa's has 6 blocks for an encoder of 12.
- A share of the captions is read without an image, for the prior "null" (`null_share`; 0 leaves it out).
- Texts have the length of the batch's longest, not 64.
- "late" and "prefix" aren't CapPa's. In "late" the text tower never sees the image. The states of words attend to the
  image once, behind the tower's last block: P(w_k) = softmax(W LN(h_k + Attend(h_k, image))).

CoCa (Yu et al. 2022): CLIP with a decoder behind its text tower that predicts each word from the image.

Section 3.2, equation 4: the loss is contrast_weight InfoNCE + caption_weight (-log P of a token). The text tower reads
the words alone; its vector is CLIP's, the end token's. Behind the tower stand blocks with cross-attention. They read
the tower's states of the words before each word and see the image; a linear head then gives log P of the word. One
model has both scores (`score`): cosines, and likelihoods as in `menagerie.models.networks.likelihoods`.

Where we differ from the paper and from open_clip's coca_model.py:

- The text tower is CLIP's, whole, and the decoder's blocks stand behind it; the paper halves one decoder.
- Texts' vectors come from CLIP's end token; the paper appends a CLS token.
- The first token is predicted from a learned state, because a closed vocabulary has no start token; a start token of
  byte pairs isn't predicted. The state of the end token predicts nothing.
- A block of the decoder has one MLP, as in the decoder of Vaswani et al. 2017. open_clip's have a second one, behind
  cross-attention (sizes: docs/scorers.md).
- An image's vector comes from CLS, and words see all patches, or CLS alone (`tokens`). The paper pools patches by
  learned queries, one for the vector and 256 for the words.
- A share of the captions is read without an image, for the prior "null" (`null_share`); 0 leaves it out.
- InfoNCE compares with false captions too, if the recipe has any; the captioning loss doesn't.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.models.networks.likelihoods import LikelihoodScorer, WordEmbedding, shift_right, token_mask
from menagerie.models.networks.pairs import TokenBatch
from menagerie.models.objectives import Targets, contrastive_loss
from menagerie.models.scorer import Sharing
from menagerie.models.scorers.captioners import CaptionerConfig, CoCaConfig
from menagerie.models.texts import Tensors
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.features import Layer
from menagerie.models.towers.fused import FusedBlocks, KeysValues, add_positions, embed_words, final_norm, text_blocks
from menagerie.models.towers.towers import self_attention


class CaptionerScorer(LikelihoodScorer):
    """Scores a text by its log-likelihood given an image. Scores are at most 0 unless `alpha` is positive."""

    config_class = CaptionerConfig
    sharing = Sharing()
    pairs_only = True

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: CaptionerConfig) -> None:
        super().__init__(towers, texts)
        built = self.take_parts(towers, texts, config, "captioner")
        self.log_scale.requires_grad_(False)  # a likelihood has no temperature
        self.fused = FusedBlocks(text_blocks(built.text, "captioner"), built.image.width, config.fusion)
        self.mask = nn.Parameter(0.02 * torch.randn(built.text.width)) if config.parallel else None
        built.drop_projections()

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> KeysValues:
        """Keys and values of the images, to which words attend."""
        return self.read_images(pixels)

    def encode_texts(self, texts: TokenBatch) -> WordEmbedding:
        """The embedding of texts: all that can be computed without an image."""
        tower, hidden = self.towers.text, None
        words = embed_words(tower, shift_right(texts.ids))
        if self.mask is not None:
            hidden = texts.chance[:, 1] < self.config.parallel
            words = torch.where(hidden[:, None, None], self.mask, words)
        return self.word_embedding(texts, self.fused.before(add_positions(tower, words), hidden))

    def loss(self, images: KeysValues, texts: WordEmbedding, targets: Targets) -> Float[Tensor, ""]:
        """The captioning loss, without false captions."""
        by_caption = self.config.average == "captions"
        return self.caption_loss(images, texts, targets, self.config.parallel, by_caption)

    def last_norm(self, states: Float[Tensor, "*b w"]) -> Float[Tensor, "*b w"]:
        """The text tower's last LayerNorm."""
        return final_norm(self.towers.text, states)

    def text_parts(self, embedding: WordEmbedding, tokens: Layer | None) -> dict[str, Layer]:
        """The states of words before they see an image."""
        return {"words": Layer(embedding.states, token_mask(embedding.tokens))}


class ImageEmbedding(NamedTuple):
    """The embedding of n images."""

    vectors: Float[Tensor, "n d"]
    """Unit vectors."""
    seen: KeysValues
    """Keys and values of the images, to which the decoder's words attend."""


class TextEmbedding(NamedTuple):
    """The embedding of m texts."""

    vectors: Float[Tensor, "m d"]
    """Unit vectors."""
    words: WordEmbedding


class CoCaScorer(LikelihoodScorer):
    """CLIP's vectors and a captioner on one pair of towers. Scores are cosines, or log-likelihoods, which are at most 0
    unless `alpha` is positive."""

    config_class = CoCaConfig
    sharing = Sharing()

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: CoCaConfig) -> None:
        super().__init__(towers, texts, config.logit_scale)
        if config.alpha and config.score == "contrast":
            raise UserError(
                "--coca.alpha weights the prior of likelihoods: add --coca.score likelihood, or leave it out"
            )
        built = self.take_parts(towers, texts, config, "coca")
        if config.logit_scale == CoCaConfig().logit_scale:
            self.take_temperature()
        width, heads = built.text.width, built.model.transformer.resblocks[0].attn.num_heads
        self.start = nn.Parameter(0.02 * torch.randn(width))
        self.decoder = self_attention(width, heads, config.decoder_layers, 4.0)
        self.fused = FusedBlocks(tuple(self.decoder), built.image.width, "early")
        self.norm = nn.LayerNorm(width)

    @property
    def pairs_only(self) -> bool:
        """Whether scores are likelihoods."""
        return self.config.score == "likelihood"

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> ImageEmbedding:
        """Unit vectors of the images, and keys and values to which words attend."""
        tower = self.towers.image
        states, _, pooled = tower.tokens(pixels)
        return ImageEmbedding(F.normalize(tower.project(pooled), dim=-1), self.fused.read(self.visible_tokens(states)))

    def encode_texts(self, texts: TokenBatch) -> TextEmbedding:
        """Unit vectors of the texts, and the states from which each of their words is predicted."""
        tower = self.towers.text
        length = texts.ids.shape[1]
        whole = F.pad(texts.ids, (0, self.texts.context - length))
        states, _, pooled = tower.tokens(whole)
        first = self.start.expand(len(states), 1, -1)
        words = torch.cat([first, states[:, : length - 1]], dim=1)
        return TextEmbedding(F.normalize(tower.project(pooled), dim=-1), self.word_embedding(texts, words))

    def word_embedding(self, tokens: TokenBatch, states: Float[Tensor, "m t w"]) -> WordEmbedding:
        """The decoder's part of the texts' embedding, with the prior if scores need it."""
        if self.pairs_only:
            return super().word_embedding(tokens, states)
        return WordEmbedding(tokens, states, states.new_zeros(len(states)))

    def similarity(self, images: ImageEmbedding, texts: TextEmbedding) -> Float[Tensor, "n m"]:
        """The score of every image with every text."""
        if self.pairs_only:
            return super().similarity(images.seen, texts.words)
        return images.vectors @ texts.vectors.T

    def pair_similarity(self, images: ImageEmbedding, texts: TextEmbedding) -> Float[Tensor, " n"]:
        """The score of image i with text i."""
        if self.pairs_only:
            return super().pair_similarity(images.seen, texts.words)
        return (images.vectors * texts.vectors).sum(-1)

    def vectors_of(self, embedding: Tensors) -> Float[Tensor, "n d"] | None:
        """The vectors that InfoNCE compares, even if scores are likelihoods."""
        return embedding.vectors

    def loss(self, images: ImageEmbedding, texts: TextEmbedding, targets: Targets) -> Float[Tensor, ""]:
        """The weighted sum of InfoNCE and the captioning loss."""
        cosines = images.vectors @ texts.vectors.T
        contrast = contrastive_loss(cosines, self.logit_scale(), targets)
        caption = self.caption_loss(images.seen, texts.words, targets)
        return self.config.contrast_weight * contrast + self.config.caption_weight * caption

    def last_norm(self, states: Float[Tensor, "*b w"]) -> Float[Tensor, "*b w"]:
        """The decoder's own LayerNorm."""
        return self.norm(states)

    def image_parts(self, embedding: ImageEmbedding, tokens: Layer | None) -> dict[str, Layer]:
        """The vector of each image."""
        return {"whole": Layer(embedding.vectors[:, None])}

    def text_parts(self, embedding: TextEmbedding, tokens: Layer | None) -> dict[str, Layer]:
        """The states of words before they see an image, and the vector of each text."""
        words = embedding.words
        return {"words": Layer(words.states, token_mask(words.tokens)), "whole": Layer(embedding.vectors[:, None])}

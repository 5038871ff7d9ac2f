"""Scorers by the likelihood of a text given an image, less a weight times the text's prior.

    log P(t | i) = sum_k log P(w_k | w_1 ... w_{k-1}, i)

over the words of a text and its end; a start token isn't predicted. The score is log P(t | i) - alpha log P(t), by
default divided by the number of these tokens. alpha = 0 is the likelihood (CapPa, not divided: Tschannen et al. 2023,
section 3), alpha = 1 the pointwise mutual information (VisualGPTScore: Lin et al. 2024, section 3, where alpha is
tuned). P(t) comes from the same network:

- "null": a learned token replaces each token of the image. A share of the training captions is read in this way.
- "noise": the mean of P(t | i) over 8 images of Gaussian noise.
- "images": the mean of P(t | i) over 32 training images, which the scorer keeps.

Means are of probabilities of whole texts, not of their logarithms. P(t) doesn't depend on the image: it can change
which text an image chooses, never which image a text chooses.

In training the loss is the mean of -log P over all tokens of the images' own captions, as in CoCa, or the mean over
captions of that mean, as in CapPa. Captions that belong to no image have no part in it.

A captioner as a scorer, after CapPa (Tschannen et al. 2023): CLIP's towers, with a text tower that predicts each
word.

The text tower's blocks read the words before each word and see the image (`menagerie.models.towers.fused`); a linear
head gives log P of each token. Scores, priors and loss: `menagerie.models.networks.captioners`.

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
model has both scores (`score`): cosines, and likelihoods as in `menagerie.models.networks.captioners`.

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

import math
from abc import abstractmethod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.models.networks.pairs import PAIRS, TokenBatch, all_pairs, reader_of, slice_rows
from menagerie.models.objectives import Targets, contrastive_loss
from menagerie.models.scorer import Scorer, Sharing
from menagerie.models.scorers.captioners import CaptionerConfig, CoCaConfig, LikelihoodConfig
from menagerie.models.texts import Tensors, map_tensors
from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.features import Layer
from menagerie.models.towers.fused import FusedBlocks, KeysValues, add_positions, embed_words, final_norm, text_blocks
from menagerie.models.towers.towers import Towers, self_attention

NOISE_IMAGES = 8
MOST_LOGITS = 1 << 25


class WordEmbedding(NamedTuple):
    """The embedding of m texts, as far as it can be computed without an image."""

    tokens: TokenBatch
    states: Float[Tensor, "m t w"]
    """The states from which each token is predicted, before they see an image."""
    prior: Float[Tensor, " m"]
    """log P(t); 0 where no score needs it."""


class LikelihoodScorer(Scorer):
    """The base of scorers by likelihood; `self.fused` and `self.head` turn states of words into logits."""

    references = 32
    fused: FusedBlocks

    def take_parts(self, towers: TowerConfig, texts: TextSpace, config: LikelihoodConfig, name: str) -> Towers:
        """Build the towers, the reader, the head and what the prior needs; raise if the prior "null" isn't trained."""
        if config.prior == "null" and config.alpha and not config.null_share:
            raise UserError(f"--{name}.prior null is the prior of captions read without an image: raise .null-share")
        self.config, built = config, build_towers(towers, texts)
        built.require_tokens(name)
        self.take_towers(built)
        self.reader, self.starts = reader_of(built), built.starts
        self.null = nn.Parameter(0.02 * torch.randn(built.image.width))
        self.head = nn.Linear(built.text.width, built.tokenizer.vocab_size)
        nn.init.zeros_(self.head.weight)  # so that the first loss is the logarithm of the number of tokens
        nn.init.zeros_(self.head.bias)
        side = towers.resolution
        self.register_buffer("kept_images", torch.zeros(self.references, 3, side, side, dtype=torch.uint8))
        noise = torch.randn(NOISE_IMAGES, 3, side, side, generator=torch.Generator().manual_seed(0))
        self.register_buffer("noise", noise, persistent=False)
        return built

    def keep_references(self, images: UInt8[Tensor, "r 3 h w"]) -> None:
        """Keep training images for the prior "images"; until then it uses black ones."""
        self.kept_images.copy_(images)

    def visible_tokens(self, states: Float[Tensor, "n p v"]) -> Float[Tensor, "n q v"]:
        """Of all tokens of images, CLS first, return those that words see: CLS or the patches."""
        return states[:, :1] if self.config.tokens == "pooled" else states[:, 1:]

    def read_images(self, pixels: Float[Tensor, "n 3 h w"]) -> KeysValues:
        """Encode normalised images as keys and values to which words attend."""
        return self.fused.read(self.visible_tokens(self.towers.image.tokens(pixels).states))

    def word_embedding(self, tokens: TokenBatch, states: Float[Tensor, "m t w"]) -> WordEmbedding:
        """The embedding of texts, with their prior where scores need it."""
        embedding = WordEmbedding(tokens, states, states.new_zeros(len(states)))
        if self.training or not self.config.alpha:
            return embedding
        return embedding._replace(prior=self.log_prior(embedding))

    def log_prior(self, texts: WordEmbedding) -> Float[Tensor, " m"]:
        """log P(t) of each text, as `config.prior` says."""
        images = self.prior_images()
        count = len(images.keys)
        each = all_pairs(self.log_likelihood, images, texts, count, len(texts.states), self.pairs_at_once(texts))
        return each.logsumexp(0) - math.log(count)

    def prior_images(self) -> KeysValues:
        """Keys and values of the images over which the prior is a mean; for the prior "null", of no image."""
        if self.config.prior == "null":
            return self.without_image()
        images = self.noise if self.config.prior == "noise" else self.pixel_scale(self.kept_images)
        return self.read_images(images.to(self.null.dtype))

    def without_image(self) -> KeysValues:
        """The keys and values without an image: the learned token replaces each image token."""
        count = 1 if self.config.tokens == "pooled" else self.towers.image.n_tokens - 1
        return self.fused.read(self.null.expand(1, count, -1))

    def log_likelihood(
        self, images: KeysValues, texts: WordEmbedding, hidden: Bool[Tensor, "n c"] | None = None
    ) -> Float[Tensor, "n c"]:
        """log P(t | i) of the c texts of each image."""
        return self.by_token(images, texts, hidden).sum(-1)

    def by_token(
        self, images: KeysValues, texts: WordEmbedding, hidden: Bool[Tensor, "n c"] | None = None
    ) -> Float[Tensor, "n c t"]:
        """log P of each token given those before it and the image; 0 for padding, and for a start token."""
        logits = self.head(self.last_norm(self.fused.after(texts.states, images, hidden)))
        each = logits.log_softmax(-1).gather(-1, texts.tokens.ids[..., None])[..., 0]
        return each.masked_fill(~token_mask(texts.tokens, self.starts), 0)

    @abstractmethod
    def last_norm(self, states: Float[Tensor, "*b w"]) -> Float[Tensor, "*b w"]:
        """Apply the LayerNorm before the head."""

    def score(self, images: KeysValues, texts: WordEmbedding) -> Float[Tensor, "n c"]:
        """log P(t | i) - alpha log P(t) of the c texts of each image, per token if the config says so."""
        score = self.log_likelihood(images, texts) - self.config.alpha * texts.prior
        return score / (texts.tokens.length - self.starts) if self.config.per_token else score

    def pairs_at_once(self, texts: WordEmbedding) -> int:
        """Number of pairs to read at once; each has a logit for each token and each word of the vocabulary."""
        return max(1, min(PAIRS, MOST_LOGITS // max(1, texts.states.shape[1] * self.head.out_features)))

    def similarity(self, images: KeysValues, texts: WordEmbedding) -> Float[Tensor, "n m"]:
        n, m = len(images.keys), len(texts.states)
        return all_pairs(self.score, images, texts, n, m, self.pairs_at_once(texts))

    def pair_similarity(self, images: KeysValues, texts: WordEmbedding) -> Float[Tensor, " n"]:
        return self.score(images, map_tensors(texts, lambda tensor: tensor[:, None]))[:, 0]

    def caption_loss(
        self,
        images: KeysValues,
        texts: WordEmbedding,
        targets: Targets,
        parallel: float = 0.0,
        by_caption: bool = False,
    ) -> Float[Tensor, ""]:
        """The mean of -log P over all tokens of the images' own captions; with `by_caption` the mean over captions of
        each one's mean.

        `TokenBatch.chance` decides which captions are read without an image, and which have their words hidden (a share
        of `parallel`).
        """
        rows = targets.rows
        own = map_tensors(slice_rows(texts, rows.start, rows.stop), lambda tensor: tensor[:, None])
        blind = (own.tokens.chance[..., 0] < self.config.null_share)[..., None, None, None]
        images = KeysValues(*(torch.where(blind, *pair) for pair in zip(self.without_image(), images, strict=True)))
        hidden = own.tokens.chance[..., 1] < parallel if parallel else None
        each = -self.by_token(images, own, hidden).sum(-1)
        if by_caption:
            return (each / (own.tokens.length - self.starts)).sum() / targets.images
        return each.sum() / (texts.tokens.length - self.starts)[: targets.images].sum()


def token_mask(tokens: TokenBatch, first: int = 0) -> Bool[Tensor, "*b t"]:
    """Mask of the tokens that aren't padding, from the one with index `first` on."""
    places = torch.arange(tokens.ids.shape[-1], device=tokens.ids.device)
    return (places >= first) & (places < tokens.length[..., None])


def shift_right(ids: Int64[Tensor, "m t"]) -> Int64[Tensor, "m t"]:
    """Return the token before each token; 0 before the first, as in CapPa (a closed vocabulary has no start token)."""
    return torch.nn.functional.pad(ids[:, :-1], (1, 0))


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
        if self.pairs_only:
            return super().similarity(images.seen, texts.words)
        return images.vectors @ texts.vectors.T

    def pair_similarity(self, images: ImageEmbedding, texts: TextEmbedding) -> Float[Tensor, " n"]:
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

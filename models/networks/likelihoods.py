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
"""

import math
from abc import abstractmethod
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.models.networks.pairs import PAIRS, TokenBatch, all_pairs, reader_of, slice_rows
from menagerie.models.objectives import Targets
from menagerie.models.scorer import Scorer
from menagerie.models.scorers.captioners import LikelihoodConfig
from menagerie.models.texts import map_tensors
from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.fused import FusedBlocks, KeysValues
from menagerie.models.towers.towers import Towers

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
        """The score of every image with every text."""
        n, m = len(images.keys), len(texts.states)
        return all_pairs(self.score, images, texts, n, m, self.pairs_at_once(texts))

    def pair_similarity(self, images: KeysValues, texts: WordEmbedding) -> Float[Tensor, " n"]:
        """The score of image i with text i."""
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

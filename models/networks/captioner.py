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
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from menagerie.models.networks.likelihoods import LikelihoodScorer, WordEmbedding, shift_right, token_mask
from menagerie.models.networks.words import TokenBatch
from menagerie.models.objectives import Targets
from menagerie.models.scorer import Sharing
from menagerie.models.scorers.captioner import CaptionerConfig
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.features import Layer
from menagerie.models.towers.fused import FusedBlocks, KeysValues, add_positions, embed_words, final_norm, text_blocks


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

"""CS-CLIP (Kargi et al. 2026): CLIP that also tells parts of captions from false versions of them.

Scores and towers are CLIP's. For an image i, t_i0 is its caption, and t_i1 to t_iK are parts of the caption: some of
its objects, in any order (`Captioned.several`). NegCLIP(k) is InfoNCE of images and texts t_ik, with false versions of
these texts as further columns: for captions (k = 0) those of all images, for parts each image's own alone, as in the
published `multi_caption` loss. The loss is NegCLIP(0) + part_weight mean_k NegCLIP(k). Each part has one false
version, in which a word is replaced. False captions are swaps unless `--text-negatives` says otherwise.

A text that means the same as another image's caption, or as a part of it, is a positive of that image too. One that is
only true of that image is left out. In NegCLIP(0), a caption that means the same as a part of another caption is left
out, too.

Where we differ from the published code (kargibora/CS-CLIP):

- No language model: parts and false versions come from the scene. A part has one object or several, with or without
  their relation. A lone animal's part is its caption.
- The published code leaves images without a false version of a text out of the whole loss of that text; here they lack
  that column alone.
- We leave out the terms of margin, rank, text and paraphrase, which have weight 0 in the published code.

READ-CLIP (Kwon et al. 2025): CLIP whose text vectors are decoded to other captions of the image, and trained to lie
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

C2LIP (Pham et al. 2026): SigLIP that is also trained to find each phrase of a caption in the image.

Scores are those of SigLIP's vectors. With unit vectors v_i of images, p_k of the K phrases of a batch's captions and
x_iq of patches, the loss is SigLIP's plus phrase_weight L(v_i p_k) + patch_weight L(cos(x_ik, p_k)), where

    L(s) = -1/K sum_ik log sigmoid(z_ik (scale s_ik + bias)),    z_ik = 1 for the image that k is from, else -1
    x_ik = sum_q softmax_q(p_k x_iq) x_iq

Scale and bias are those of SigLIP's loss. Pooling has no parameters. The published code calls the terms NPC and XAC.

Where we differ from the published code (SamsungLabs/concept_centric_clip):

- A phrase is no negative of an image whose caption has it too, or is known to claim it: such pairs are left out. In
  the published code a phrase is a negative of every image but its own.
- Phrases are the nodes of scene graphs, backgrounds included. The authors' are written by a language model, without
  places.
- Patches are projected as CLS is, so C2LIP needs CLIP's towers. The authors' are the values of SigLIP's attentional
  pooling.
- Temperature and bias start as those of our `siglip`.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.models.networks.captioners import shift_right, token_mask
from menagerie.models.networks.clip import CaptionReader, CLIPScorer, EmbeddedScorer, SigLIPScorer
from menagerie.models.networks.graph_batch import number_distinct
from menagerie.models.networks.own_negatives import ImageEmbedding, PatchScorer
from menagerie.models.networks.pairs import TokenBatch, TokenReader, slice_rows
from menagerie.models.objectives import Targets, contrastive_loss, cross_entropy, sigmoid_loss, target_shares
from menagerie.models.scorer import Sharing
from menagerie.models.scorers.further_texts import C2LIPConfig, CSCLIPConfig, ReadCLIPConfig
from menagerie.models.texts import Texts
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.fused import FusedBlocks, add_positions, embed_words
from menagerie.models.towers.towers import self_attention


@dataclass(frozen=True)
class PartsReader(CaptionReader):
    """Reads captions as token ids, and asks for training batches with parts of captions and false versions of these."""

    captions: int
    false_further: str = "replace"


class CSCLIPScorer(CLIPScorer):
    """CLIP trained with CS-CLIP's losses."""

    config_class = CSCLIPConfig
    sharing = Sharing(images="gathered")

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: CSCLIPConfig) -> None:
        super().__init__(towers, texts, config)
        self.reader = PartsReader(self.reader.tokenizer, self.reader.context, 1 + self.config.parts)

    def loss(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"], targets: Targets) -> Float[Tensor, ""]:
        """NegCLIP(0), plus the weighted mean of NegCLIP(k) over the parts."""
        scale, parts = self.logit_scale(), range(1, targets.matched // len(images))
        whole, *rest = (negclip_loss(images, texts, targets, k, scale) for k in (0, *parts))
        return whole + self.config.part_weight * torch.stack(rest).mean() if rest else whole


def negclip_loss(
    images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"], targets: Targets, k: int, scale: Float[Tensor, ""]
) -> Float[Tensor, ""]:
    """NegCLIP(k): InfoNCE of images and their texts t_ik, with the false versions of these texts as negatives: those of
    all images for k = 0, else each image's own."""
    n, m = targets.same.shape
    own, false = slice(k * n, (k + 1) * n), slice(targets.matched, m)
    masked = torch.zeros_like(targets.same) if targets.masked is None else targets.masked
    same, others = targets.same[:, own], masked[:, false]
    if targets.owner is not None:
        others = others | (targets.owner // n != k)
        if k:
            others = others | (targets.owner % n != torch.arange(n, device=others.device)[:, None])
    right = same & same.T if k == 0 else same  # two captions, each of which is the other or a part of it, are the same
    rest = torch.cat([masked[:, own] | (same & ~right), others], dim=1)
    columns = Targets(torch.cat([right, targets.same[:, false]], dim=1), rest, n)
    return contrastive_loss(images @ torch.cat([texts[own], texts[false]]).T, scale, columns)


Read = Int64[Tensor, "m context"] | TokenBatch


@dataclass(frozen=True)
class FurtherReader(TokenReader):
    """Reads captions as token ids; in training as a `TokenBatch`, with another caption of each image."""

    captions: int = 2

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> Read:
        """Return token ids of every caption; in training a `TokenBatch`."""
        return super().__call__(texts, generator) if generator else CaptionReader.__call__(self, texts)


class DecodedTexts(NamedTuple):
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

    def encode_texts(self, texts: Read) -> Float[Tensor, "m d"] | DecodedTexts:
        """Unit vectors of the captions; in training an embedding that also has what the decoder needs."""
        if isinstance(texts, Tensor):
            return super().encode_texts(texts)
        tower = self.towers.text
        ends = tower.tokens(F.pad(texts.ids, (0, self.texts.context - texts.ids.shape[1]))).pooled
        return DecodedTexts(F.normalize(tower.project(ends), dim=-1), ends, texts)

    def loss(self, images: Float[Tensor, "n d"], texts: DecodedTexts, targets: Targets) -> Float[Tensor, ""]:
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


class PhrasedTexts(NamedTuple):
    """The token ids of m captions and of their k phrases, of which u are distinct."""

    captions: Int64[Tensor, "m context"]
    phrases: Int64[Tensor, "u context"]
    number: Int64[Tensor, " k"]
    """Row of `phrases` that holds each phrase."""


class PhraseEmbedding(NamedTuple):
    """Unit vectors of m captions and of their k phrases, of which u are distinct."""

    vectors: Float[Tensor, "m d"]
    phrases: Float[Tensor, "u d"]
    number: Int64[Tensor, " k"]


@dataclass(frozen=True)
class PhrasedReader(CaptionReader):
    """Reads captions as token ids; in training also phrases, each distinct one once."""

    phrases: ClassVar[bool] = True

    def __call__(
        self, texts: Texts, generator: torch.Generator | None = None
    ) -> Int64[Tensor, "m context"] | PhrasedTexts:
        """Return the token ids of every caption; in training also those of the captions' phrases."""
        if generator is None:
            return super().__call__(texts)
        first = len(texts.captions) - (texts.targets.phrases if texts.targets else 0)
        phrases = texts.captions[first:]
        numbers = number_distinct(phrases)
        number = torch.tensor([numbers[phrase] for phrase in phrases], dtype=torch.int64)
        captions, distinct = (self.tokenizer(list(some), self.context) for some in (texts.captions[:first], numbers))
        return PhrasedTexts(captions, distinct, number)


class C2LIPScorer(PatchScorer, SigLIPScorer):
    """SigLIP trained with C2LIP's losses."""

    config_class = C2LIPConfig
    sharing = Sharing("tower")

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: C2LIPConfig) -> None:
        super().__init__(towers, texts, config)
        self.reader = PhrasedReader(self.reader.tokenizer, self.reader.context)

    def encode_texts(self, texts: Int64[Tensor, "m context"] | PhrasedTexts) -> Float[Tensor, "m d"] | PhraseEmbedding:
        """Unit vectors of the captions, in training also of their phrases."""
        if isinstance(texts, Tensor):
            return super().encode_texts(texts)
        both = super().encode_texts(torch.cat([texts.captions, texts.phrases]))
        return PhraseEmbedding(*both.split([len(texts.captions), len(texts.phrases)]), texts.number)

    def loss(self, images: ImageEmbedding, texts: PhraseEmbedding, targets: Targets) -> Float[Tensor, ""]:
        """SigLIP's loss of captions, plus the losses of phrases with images and with the patches that fit them."""
        count = len(texts.vectors)
        captions, phrases = (part_of(targets, columns) for columns in (slice(0, count), slice(count, None)))
        loss = super().loss(images.vectors, texts.vectors, captions)
        if not targets.phrases:
            return loss
        fit = (texts.phrases @ images.patches.transpose(1, 2)).softmax(-1)
        pooled = F.normalize(fit @ images.patches, dim=-1)  # from each image, by each phrase
        scores = images.vectors @ texts.phrases.T, (pooled * texts.phrases).sum(-1)
        for weight, cosines in zip((self.config.phrase_weight, self.config.patch_weight), scores, strict=True):
            logits = self.logit_scale() * cosines[:, texts.number] + self.bias
            loss = loss + weight * sigmoid_loss(logits, phrases.same, phrases.masked, targets.phrases)
        return loss


def part_of(targets: Targets, columns: slice) -> Targets:
    """Return the targets of the texts in `columns`."""
    masked = None if targets.masked is None else targets.masked[:, columns]
    return targets._replace(same=targets.same[:, columns], masked=masked)

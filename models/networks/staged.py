"""LABCLIP: a frozen CLIP whose text vectors pass a linear map, trained with swapped captions as negatives.

The score is the cosine of x and A y for an image's vector x and a text's vector y. A starts as the identity, so that
scores start as the frozen model's; only A and a temperature are trained. The loss is NegCLIP's: each image among all
captions and their swaps, each caption among images.

Where we differ from the published code (kdariina/CLIP-not-BoW-unimodally):

- The frozen model is trained in a cell of its own, and the images that it sees count as LABCLIP's too.
- Images are augmented while A is trained (`Recipe.augment`); theirs are encoded once.
- A text that is true of another image in the batch isn't a negative of that image. Their 192 CLEVR captions repeat
  within a batch, and for two objects of one colour the swap equals the caption.

DCSM: a small network reads the map of cosines between all tokens of an image and all of a text (Kang et al. 2025).

The towers are a frozen CLIP, which is trained first, in a cell of its own. A pretrained CLIP is fine-tuned there, while
the paper uses it as published. Where we differ from the published code:

- A map is standardised by its own mean and deviation. The published code uses the whole batch's, so that a score
  depends on other images and texts in the batch.
- A functional word's vector replaces the columns of all its tokens, at every occurrence. The published code replaces
  one column, counted in words without the start token: mostly another word's.
- Columns after the end of a text are 0 after standardisation, and don't contribute to it. In the published code they
  hold cosines of padding, which depends on the tokenizer.
- The functional vectors are part of a checkpoint and may be trained. The published code gives them to no optimiser.
- There is no dropout after the score, no caption is reworded, and batches have any size. The published batches are 8
  items, each with its opposite image and caption: matrices of 16 x 16.
- The loss is the mean of both directions, not their sum; like the published one it has no temperature.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.models.networks.clip import CaptionReader
from menagerie.models.scorer import Scorer, Sharing, Tensors
from menagerie.models.scorers.staged import DCSMConfig, LABCLIPConfig
from menagerie.models.texts import Texts, by_images
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.features import Layer
from menagerie.models.towers.towers import ends_of


class LABCLIPScorer(Scorer):
    """The scorer LABCLIP: the vectors of a frozen model, `base`, with a linear map applied to those of texts."""

    config_class = LABCLIPConfig
    sharing = Sharing()

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: LABCLIPConfig, *, base: Scorer) -> None:
        super().__init__(towers, texts, config.logit_scale)
        self.config, self.base, self.reader, self.pixel_scale = config, base, base.reader, base.pixel_scale
        self.texts = base.texts
        side = base.pixel_scale.framing.resolution
        with torch.no_grad():
            width = base.encode_images(torch.zeros(1, 3, side, side, device=base.device)).shape[1]
        self.map = nn.Parameter(torch.eye(width))

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """The frozen model's unit vectors."""
        return self.base.encode_images(pixels)

    def encode_texts(self, texts: Tensors) -> Float[Tensor, "m d"]:
        """Unit vectors of the mapped captions."""
        return F.normalize(self.base.encode_texts(texts) @ self.map.T, dim=-1)

    def similarity(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
        return images @ texts.T

    def pair_similarity(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        return (images * texts).sum(-1)

    def backbones(self) -> dict[str, list[nn.Parameter]]:
        """The parameters of the frozen model."""
        return self.base.backbones()


EPSILON = 1e-12  # keeps the deviation of a constant map above 0


class WordTokens(NamedTuple):
    """Captions as token ids, with the functional word that each token belongs to."""

    ids: Int64[Tensor, "m context"]
    words: Int64[Tensor, "m context"]
    """Number of the functional word, from 1; 0 for tokens of other words, start, end and padding."""


@dataclass(frozen=True)
class FunctionalReader(CaptionReader):
    """Reads captions as `WordTokens`, and ignores graphs."""

    words: tuple[str, ...]
    end: int | None = None
    """Id of the end token; None for the largest id in the text."""

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> WordTokens:
        """Token ids of every caption, with the functional word of each token."""
        return WordTokens(self.tokenizer(texts.captions, self.context), self.word_numbers(texts.captions))

    def word_numbers(self, captions: Sequence[str]) -> Int64[Tensor, "m context"]:
        """The number of each token's functional word; a word that the tokenizer splits has several tokens.

        If only the text before a word is tokenised, its end token has the position of the word's first token. Likewise
        the text up to the word's end gives the position behind the word's last token.
        """
        numbers = torch.zeros(len(captions), self.context, dtype=torch.int64)
        found = [(row, word) for row, text in enumerate(captions) for word in self.occurrences(text)]
        texts = [captions[row][:end].rstrip() for row, (_, *ends) in found for end in ends]
        positions = ends_of(self.tokenizer(texts, self.context), self.end).tolist()
        for (row, (number, *_)), start, end in zip(found, positions[::2], positions[1::2], strict=True):
            numbers[row, start:end] = number
        return numbers

    def occurrences(self, text: str) -> list[tuple[int, int, int]]:
        """For every functional word in `text`, its number from 1, and the characters at which it starts and ends."""
        if not self.words:
            return []
        return [(self.number_of[match.group().lower()], *match.span()) for match in self.pattern.finditer(text)]

    @cached_property
    def number_of(self) -> dict[str, int]:
        """Maps every functional word to its number, from 1."""
        return {word.lower(): number for number, word in enumerate(self.words, start=1)}

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A pattern that matches any functional word, as a whole word."""
        return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, self.number_of))})(?![\w-])", re.IGNORECASE)


class TextEmbedding(NamedTuple):
    """The encoded tokens of m texts, padded or cut to t tokens, one for each column of a map."""

    vectors: Float[Tensor, "m t d"]
    present: Bool[Tensor, "m t"]
    """Whether a token is part of its text, up to the end token."""
    words: Int64[Tensor, "m t"]
    """The number of each token's functional word, from 1, or 0."""


class DCSMScorer(Scorer):
    """Scores a pair by the output of a small convolutional network on its map of cosines. Scores are unbounded."""

    config_class = DCSMConfig
    capabilities = frozenset({"attention"})
    sharing = Sharing()

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: DCSMConfig, base: Scorer) -> None:
        super().__init__(towers, texts, logit_scale=1.0)
        self.log_scale.requires_grad_(False)
        self.config, self.base = config, base
        base.towers.require_tokens("dcsm")
        self.texts, self.pixel_scale = base.texts, base.pixel_scale
        self.reader = FunctionalReader(
            base.reader.tokenizer, base.texts.context, config.functional_words, base.towers.text.end_token
        )
        self.columns = config.tokens or base.texts.context
        rows = base.towers.image.n_tokens
        self.network = map_network(rows, self.columns, config.channels, config.hidden)
        vectors = (F.normalize(torch.randn(len(config.functional_words), rows), dim=1) + 1) / 3
        if config.functional == "trained":
            self.functional = nn.Parameter(vectors)
        else:
            self.register_buffer("functional", vectors)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n i d"]:
        """All tokens of the image tower, CLS first, projected, as unit vectors."""
        tower = self.base.towers.image
        return F.normalize(tower.project(tower.tokens(pixels).states), dim=-1)

    def encode_texts(self, texts: WordTokens) -> TextEmbedding:
        """All tokens of the text tower, projected, as unit vectors, with their functional words."""
        tower = self.base.towers.text
        states, present, _ = tower.tokens(texts.ids)
        vectors = F.normalize(tower.project(states), dim=-1)
        more = self.columns - texts.ids.shape[1]  # negative if texts are cut
        return TextEmbedding(F.pad(vectors, (0, 0, 0, more)), F.pad(present, (0, more)), F.pad(texts.words, (0, more)))

    def similarity(self, images: Float[Tensor, "n i d"], texts: TextEmbedding) -> Float[Tensor, "n m"]:
        """Score every image with every text, all maps at once if they fit into memory."""
        each = 4 * (2 * self.config.channels + 4) * images.shape[1] * texts.present.numel()
        return by_images(partial(self.all_maps, texts=texts), images, each)

    def all_maps(self, images: Float[Tensor, "n i d"], texts: TextEmbedding) -> Float[Tensor, "n m"]:
        """Score every image with every text, all maps at once."""
        return self.score(torch.einsum("nid,mtd->nmit", images, texts.vectors), texts)

    def pair_similarity(self, images: Float[Tensor, "n i d"], texts: TextEmbedding) -> Float[Tensor, " n"]:
        """Score image i with text i: n maps instead of n times n."""
        return self.score(torch.einsum("nid,ntd->nit", images, texts.vectors), texts)

    def phrase_maps(
        self, images: Float[Tensor, "n i d"], captions: Sequence[str], phrases: Sequence[Sequence[str]]
    ) -> Float[Tensor, "n q p"]:
        """Of each phrase of caption i the mean cosine of its tokens with the patches of image i, above the lowest, as
        shares of the map. Raises if a caption doesn't have a phrase word for word, as far as it is read."""
        reader = replace(self.reader, words=tuple(dict.fromkeys(phrase for its in phrases for phrase in its)))
        ids, numbers = reader(Texts(captions, ()))
        wanted = torch.tensor([[reader.number_of[phrase.lower()] for phrase in its] for its in phrases])
        tokens = (numbers[:, None] == wanted[..., None]).to(images)[..., : self.columns]
        if not tokens.any(-1).all():
            raise UserError(f"a caption, such as {captions[0]!r}, lacks a phrase of {', '.join(phrases[0])}")
        vectors = self.encode_texts(WordTokens(*(its.to(images.device) for its in (ids, numbers)))).vectors
        cosines = torch.einsum("nid,ntd->nti", images[:, 1:], vectors[:, : tokens.shape[-1]])
        maps = tokens @ cosines / tokens.sum(-1, keepdim=True)
        above = maps - maps.amin(-1, keepdim=True)
        return above / above.sum(-1, keepdim=True).clamp_min(EPSILON)

    def score(self, cosines: Float[Tensor, "*b i t"], texts: TextEmbedding) -> Float[Tensor, "*b"]:
        """Score each map: put the vectors of functional words in their columns, standardise, and apply the network."""
        if len(self.functional):
            vectors = F.pad(self.functional, (0, 0, 1, 0))[texts.words].transpose(1, 2)
            cosines = torch.where(texts.words[:, None] > 0, vectors, cosines)
        maps = standardise_maps(cosines, texts.present[:, None])
        return self.network(maps.flatten(0, -3)[:, None]).reshape(maps.shape[:-2])

    def image_parts(self, embedding: Float[Tensor, "n i d"], tokens: Layer | None) -> dict[str, Layer]:
        """The projected tokens of images, whose cosines make the maps."""
        return {"projected": Layer(embedding)}

    def text_parts(self, embedding: TextEmbedding, tokens: Layer | None) -> dict[str, Layer]:
        """The projected tokens of texts, padded or cut to the columns of the maps."""
        return {"projected": Layer(embedding.vectors, embedding.present)}

    def backbones(self) -> dict[str, list[nn.Parameter]]:
        """The parameters of the frozen towers."""
        return self.base.backbones()


def map_network(rows: int, columns: int, channels: int, hidden: int) -> nn.Sequential:
    """The network from maps (b 1 rows columns) to numbers (b 1): two convolutions, then two linear layers.

    In channels-last memory format, gradients for so few channels take a third of the time on a CPU.
    """
    layers = nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(channels * rows * columns, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 1),
    )
    return layers.to(memory_format=torch.channels_last)


def standardise_maps(maps: Float[Tensor, "*b i t"], present: Bool[Tensor, "m 1 t"]) -> Float[Tensor, "*b i t"]:
    """Scale each map to mean 0 and deviation 1 over its present columns; all others become 0."""
    count = present.sum((-2, -1), keepdim=True) * maps.shape[-2]
    centred = (maps - (maps * present).sum((-2, -1), keepdim=True) / count) * present
    variance = centred.square().sum((-2, -1), keepdim=True) / (count - 1)
    return centred * (variance + EPSILON).rsqrt()

"""Which tokens of a text belong to functional words: the words that place, size or deny things."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.readouts.tokens import ends_of
from menagerie.models.towers.tokenizers import Tokenizer, cut_texts


class Tokens(NamedTuple):
    """Captions as token ids, and what each token is part of."""

    ids: Int64[Tensor, "m context"]
    words: Int64[Tensor, "m context"]
    """The number of its functional word, from 1; 0 for tokens of other words, start, end and padding."""


@dataclass(frozen=True)
class FunctionalReader:
    """Captions to `Tokens`; the graphs are not read."""

    tokenizer: Tokenizer
    context: int
    words: tuple[str, ...]
    end: int | None = None
    """The id that ends a text; None: the largest."""

    def __call__(
        self,
        captions: Sequence[str],
        graphs: Sequence[SceneGraph],
        generator: torch.Generator | None = None,
        own: int | None = None,
    ) -> Tokens:
        """Token ids of every caption, and where its functional words are."""
        return Tokens(self.tokenizer(captions, self.context), self.places(captions))

    def cut(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> list[bool]:
        """Whether each caption is longer than the context."""
        return cut_texts(self.tokenizer, captions, self.context)

    def places(self, captions: Sequence[str]) -> Int64[Tensor, "m context"]:
        """The number of each token's functional word: of every occurrence all tokens, where a tokenizer cuts it.

        How many tokens lie before a word, the start token among them, is where a text that stops there ends.
        """
        places = torch.zeros(len(captions), self.context, dtype=torch.int64)
        found = [(row, word) for row, text in enumerate(captions) for word in self.occurrences(text)]
        texts = [captions[row][:end].rstrip() for row, (_, *ends) in found for end in ends]
        positions = ends_of(self.tokenizer(texts, self.context), self.end).tolist()
        for (row, (number, *_)), start, end in zip(found, positions[::2], positions[1::2], strict=True):
            places[row, start:end] = number
        return places

    def occurrences(self, text: str) -> list[tuple[int, int, int]]:
        """The number, from 1, of every functional word in `text`, and the characters where it starts and ends."""
        if not self.words:
            return []
        return [(self.number_of[match.group().lower()], *match.span()) for match in self.pattern.finditer(text)]

    @cached_property
    def number_of(self) -> dict[str, int]:
        """The number, from 1, of every functional word."""
        return {word.lower(): number for number, word in enumerate(self.words, start=1)}

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Any functional word that stands by itself."""
        return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, self.number_of))})(?![\w-])", re.IGNORECASE)

"""Several captions of each image as tensors, each distinct text once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.towers.tokenizers import Tokenizer, cut_texts


class TextBatch(NamedTuple):
    """m texts, of which u are distinct: parts of captions are alike more often than not."""

    tokens: Int64[Tensor, "u context"]
    number: Int64[Tensor, " m"]
    """Which of the distinct texts each is."""
    draw: Float[Tensor, " m"]
    """A random number for each, in training: of an image's captions the one with the highest is compared with the other
    images."""


@dataclass(frozen=True)
class CaptionsReader:
    """Captions to token ids; the graphs are not read."""

    tokenizer: Tokenizer
    context: int
    captions: int
    """How many of each image a training batch should have (see `menagerie.models.training.feed`)."""

    def __call__(
        self,
        captions: Sequence[str],
        graphs: Sequence[SceneGraph],
        generator: torch.Generator | None = None,
        own: int | None = None,
    ) -> TextBatch:
        """Token ids of every distinct caption."""
        numbers: dict[str, int] = {}
        number = torch.tensor([numbers.setdefault(text, len(numbers)) for text in captions], dtype=torch.int64)
        draw = torch.rand(len(captions), generator=generator) if generator else torch.zeros(len(captions))
        return TextBatch(self.tokenizer(list(numbers), self.context), number, draw)

    def cut(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> list[bool]:
        """Whether each caption is longer than the context."""
        return cut_texts(self.tokenizer, captions, self.context)

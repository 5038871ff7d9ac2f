"""A word-level tokenizer for models trained from scratch on a closed vocabulary.

open_clip's byte-pair table has 49 408 rows; a tiny model would spend most of an optimiser
step on rows that never occur.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Int64
from torch import Tensor

from envs.common.errors import UserError


@runtime_checkable
class Tokenizer(Protocol):
    """What a scorer needs of a tokenizer."""

    def __call__(self, texts: Sequence[str], context: int) -> Int64[Tensor, "n context"]:
        """Token ids, padded to `context`."""


@dataclass(frozen=True)
class WordTokenizer:
    """Words to ids: 0 pads, then the words, last the end token.

    open_clip's text tower pools at the largest id, hence the end token has it.
    """

    words: tuple[str, ...]

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "WordTokenizer":
        """The tokenizer of all words that occur in `texts`."""
        return cls(tuple(sorted({word for text in texts for word in text.split()})))

    @property
    def vocab_size(self) -> int:
        """Number of distinct ids."""
        return len(self.words) + 2

    def __call__(self, texts: Sequence[str], context: int) -> Int64[Tensor, "n context"]:
        """Token ids, padded to `context`; an unknown word or too long a text raises."""
        ids = {word: i for i, word in enumerate(self.words, start=1)}
        out = torch.zeros(len(texts), context, dtype=torch.int64)
        for row, text in zip(out, texts, strict=True):
            words = text.split()
            unknown = [word for word in words if word not in ids]
            if unknown:
                raise UserError(f"the word {unknown[0]!r} of {text!r} is not in this model's vocabulary")
            if len(words) >= context:
                raise UserError(f"{text!r} has {len(words)} words, this model reads at most {context - 1}")
            row[: len(words) + 1] = torch.tensor([*(ids[word] for word in words), self.vocab_size - 1])
        return out


@dataclass(frozen=True)
class OpenCLIPTokenizer:
    """The tokenizer that belongs to an open_clip architecture."""

    architecture: str

    def __call__(self, texts: Sequence[str], context: int) -> Int64[Tensor, "n context"]:
        """Token ids, padded or cut to `context`."""
        return byte_pair_tokenizer(self.architecture)(list(texts), context_length=context)


@cache
def byte_pair_tokenizer(architecture: str) -> Callable[..., Tensor]:
    """open_clip's tokenizer, built once: its table takes a tenth of a second to read."""
    import open_clip

    return open_clip.get_tokenizer(architecture)

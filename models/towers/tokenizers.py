"""Tokenizers, which turn texts into token ids: a closed vocabulary, or open_clip's byte pairs.

open_clip's byte-pair table has 49 408 rows; a tiny model on a closed vocabulary would spend most of an optimiser step
on rows that never occur.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.progress import silence_loggers
from menagerie.generators.captions.phrases import plain_word, suggest_nearest
from menagerie.models.towers.config import SMALL_TOWERS, TextSpace, TowerConfig

# Contexts are multiples of this many tokens, at least `TextSpace.context` and at most CLIP's.
CONTEXT_STEP, LONGEST_CONTEXT = 4, 77
# Tokens of a text are counted up to this number.
MEASURED = 512


@dataclass(frozen=True)
class WordTokenizer:
    """Maps words to ids: 0 is padding, then the words, and last the end token.

    The end token has the largest id because open_clip's text tower pools at the largest id.
    """

    words: tuple[str, ...]

    @property
    def vocab_size(self) -> int:
        """Number of distinct ids."""
        return len(self.words) + 2

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: i for i, word in enumerate(self.words, start=1)}

    def __call__(self, texts: Sequence[str], context: int) -> Int64[Tensor, "n context"]:
        """Token ids, padded to `context`; raises for an unknown word and for a text that is too long."""
        rows = [self._row(text, context) for text in texts]
        return torch.tensor(rows, dtype=torch.int64).reshape(len(texts), context)

    def _row(self, text: str, context: int) -> list[int]:
        words = [word for word in map(self._known, text.split()) if word]
        if unknown := next((word for word in words if word not in self.ids), None):
            near = suggest_nearest(unknown, self.words)
            raise UserError(f"the word {unknown!r} of {text!r} is not in this model's vocabulary{near}")
        if len(words) >= context:
            raise UserError(f"{text!r} has {len(words)} words, this model reads at most {context - 1}")
        return [*(self.ids[word] for word in words), self.vocab_size - 1, *[0] * (context - len(words) - 1)]

    def _known(self, word: str) -> str:
        """The word if it is known, else the word without capitals and punctuation; empty for a lone dash."""
        return word if word in self.ids else plain_word(word)

    def length(self, text: str) -> int:
        """The number of words, plus one for the end token."""
        return len(text.split()) + 1


@dataclass(frozen=True)
class OpenCLIPTokenizer:
    """The tokenizer of an open_clip architecture; for "" CLIP's byte pairs."""

    architecture: str = ""

    @property
    def vocab_size(self) -> int:
        """Number of distinct ids."""
        tokenizer = open_clip_tokenizer(self.architecture)
        return getattr(tokenizer, "vocab_size", None) or len(tokenizer.tokenizer)

    def __call__(self, texts: Sequence[str], context: int) -> Int64[Tensor, "n context"]:
        """Token ids, padded to `context`; a longer text loses its last words."""
        if not texts:
            return torch.zeros(0, context, dtype=torch.int64)
        return open_clip_tokenizer(self.architecture)(list(texts), context_length=context)

    def length(self, text: str) -> int:
        """The number of tokens with start and end, counted up to `MEASURED`."""
        ids = self([text], MEASURED)[0].tolist()
        while ids[-2:-1] == ids[-1:]:  # some pad with another id than 0
            ids.pop()
        return len(ids) - (ids[-1] == 0)


# Tokenizers are plain data, because they are sent to the processes that prepare batches.
Tokenizer = WordTokenizer | OpenCLIPTokenizer


@cache
@silence_loggers()
def open_clip_tokenizer(architecture: str) -> Callable[..., Any]:
    """The tokenizer of an open_clip architecture, or CLIP's for ""; cached, because reading its table takes 0.1 s."""
    import open_clip

    return open_clip.get_tokenizer(architecture) if architecture else open_clip.SimpleTokenizer()


def tokenizer_of(towers: TowerConfig, words: tuple[str, ...]) -> Tokenizer:
    """The tokenizer of a tower configuration: the one that it names, or its architecture's."""
    small = towers.architecture in SMALL_TOWERS
    kind = towers.tokenizer or ("closed" if small else "open_clip")
    if kind == "closed" and small:
        return WordTokenizer(words)
    if kind == "open_clip":
        return OpenCLIPTokenizer("" if small else towers.architecture)
    raise UserError(
        f"tokenizer {towers.tokenizer!r} doesn't fit {towers.architecture!r}; small towers take closed or open_clip, "
        "an open_clip architecture its own (leave it empty)"
    )


def distinct_words(texts: Iterable[str]) -> tuple[str, ...]:
    """All words in the texts, sorted."""
    return tuple(sorted({word for text in texts for word in text.split()}))


def text_space(towers: TowerConfig, texts: Iterable[str]) -> TextSpace:
    """Return the text space for `texts`: their words, for a closed vocabulary, and a context for the longest text.

    With another tokenizer the context is at most `LONGEST_CONTEXT`, so that longer texts are cut.
    """
    distinct = set(texts)
    words = distinct_words(distinct)
    tokenizer = tokenizer_of(towers, words)
    longest = max(map(tokenizer.length, distinct), default=0)
    context = -(-longest // CONTEXT_STEP) * CONTEXT_STEP
    if not isinstance(tokenizer, WordTokenizer):
        context = min(context, LONGEST_CONTEXT)
        words = ()
    return TextSpace(words, max(TextSpace.context, context))


def cut_texts(tokenizer: Tokenizer, texts: Sequence[str], context: int) -> list[bool]:
    """For each text, whether it has more than `context` tokens with start and end; later tokens are never read.

    Short texts aren't tokenised: a byte hardly ever gives more than two tokens.
    """
    return [2 * len(text.encode()) + 2 > context and tokenizer.length(text) > context for text in texts]


def check_uncut(towers: TowerConfig, space: TextSpace, texts: Iterable[str]) -> None:
    """Raise for a text that the towers would cut, because a cut text no longer describes its scene."""
    tokenizer = tokenizer_of(towers, space.words)
    lengths = {text: tokenizer.length(text) for text in set(texts)}
    longest = max(lengths, key=lengths.__getitem__, default="")
    if longest and lengths[longest] > space.context:
        raise UserError(
            f"{longest!r} has {lengths[longest]} tokens, and {towers.architecture} reads {space.context}: it would be "
            "cut; choose another --template, shorter phrasings, or towers that read more"
        )

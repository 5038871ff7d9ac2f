"""Many texts in little memory, and which texts from strangers aren't taken as captions."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

import numpy as np

from generators.captions.graph import SceneGraph
from generators.parsers.parser import CaptionParser

# A tag, a comment or a declaration; "<3" and "a < b" are none.
MARKUP = re.compile(r"<(?:/?[A-Za-z][^<>]*|![^<>]*|\?[^<>]*)>")
MARKUP_REASON = "HTML in the text"


def has_markup(text: str) -> bool:
    """Whether a text has HTML tags in it: such texts are refused and counted, never interpreted."""
    return bool(MARKUP.search(text))


def graphs_of(texts: Sequence[str], parse: Callable[[str], SceneGraph]) -> list[SceneGraph]:
    """The scene graphs of texts; a `CaptionParser` gets all at once, which is faster."""
    return parse.parse(texts) if isinstance(parse, CaptionParser) else list(map(parse, texts))


class Texts(Sequence[str]):
    """A list of texts as two arrays, which travel fast to loader processes."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Raises for more than memory holds."""
        parts = [text.encode() for text in texts]
        self.ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        self.letters = b"".join(parts)

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        k = range(len(self))[index]
        return self.letters[int(self.ends[k - 1]) if k else 0 : int(self.ends[k])].decode()

    def __iter__(self) -> Iterator[str]:
        return (self[k] for k in range(len(self)))



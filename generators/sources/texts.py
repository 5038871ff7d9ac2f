"""A compact list of many texts, and the reasons for which a text isn't accepted as a caption."""

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.generators.sources.rows import LONGEST_TEXT, writable

# A tag, a comment or a declaration; "<3" and "a < b" don't match.
MARKUP = re.compile(r"<(?:/?[A-Za-z][^<>]*|![^<>]*|\?[^<>]*)>")
MARKUP_REASON = "HTML in the text"


def graphs_of(texts: Sequence[str], parse: Callable[[str], SceneGraph]) -> list[SceneGraph]:
    """The scene graphs of texts; a `CaptionParser` gets all at once, which is faster."""
    return parse.parse(texts) if isinstance(parse, CaptionParser) else list(map(parse, texts))


class Texts(Sequence[str]):
    """A list of texts, stored as bytes and an array of the texts' ends: these are sent quickly to loader processes."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Encode the texts; raises `UnicodeEncodeError` for a lone surrogate (half a character)."""
        parts = [text.encode() for text in texts]
        self.ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        self.letters = b"".join(parts)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> str:
        k = range(len(self))[index]
        return self.letters[int(self.ends[k - 1]) if k else 0 : int(self.ends[k])].decode()


def refusal(text: str) -> str:
    """The reason why a text isn't accepted; empty if it is. Texts with HTML are never interpreted."""
    if not text.strip():
        return "no text"
    if not writable(text):
        return "half a character in the text"
    if len(text) > LONGEST_TEXT:
        return "a text that is too long"
    return MARKUP_REASON if MARKUP.search(text) else ""

"""Captions as people type them: capitals and punctuation that no vocabulary has."""

import difflib
import string
from collections.abc import Iterable


def plain_word(word: str) -> str:
    """ "Cat," -> "cat": lower case, without punctuation at its ends."""
    return word.strip(string.punctuation + "“”‘’…–—").lower()


def plain_text(text: str) -> str:
    """ "A red cat, and a dog." -> "a red cat and a dog"."""
    return " ".join(filter(None, map(plain_word, text.split())))


def nearest(word: str, known: Iterable[str]) -> str:
    """ "; did you mean 'cat'?" for the known word that resembles `word` most; empty where none does."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.65)
    return f"; did you mean {near[0]!r}?" if near else ""

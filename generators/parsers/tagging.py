"""Tags parts of speech with spaCy, for benchmarks that shuffle words by them."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from menagerie.envs.core.errors import UserError

# Maps a text to its tokens, each with its tag in the Penn treebank's notation ("NN", "JJ").
Tagger = Callable[[str], Sequence[tuple[str, str]]]
MODEL = "en_core_web_sm"  # the model that ARO uses


@cache
def spacy_tags(text: str) -> list[tuple[str, str]]:
    """The tokens and tags of a text, by spaCy's small English model."""
    return [(token.text, token.tag_) for token in spacy_model()(text)]


@cache
def spacy_model() -> Any:
    """Load the model; raises if spaCy or the model isn't installed."""
    way_out = (
        f"ARO's word orders need its tags: pip install spacy, python -m spacy download {MODEL}, or choose others by "
        "--benchmarks"
    )
    try:
        import spacy
    except ImportError as error:
        raise UserError(f"spaCy isn't installed; {way_out}") from error
    try:
        return spacy.load(MODEL, exclude=["parser", "ner", "lemmatizer"])
    except OSError as error:
        raise UserError(f"spaCy's model {MODEL} isn't installed; {way_out}") from error

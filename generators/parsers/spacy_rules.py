"""Parses captions by rules over spaCy's dependency trees (OC-CLIP, A.3), and tags parts of speech with spaCy, for
benchmarks that shuffle words by them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.generators.parsers.dependency_rules import VERSION, Word, graph_of_tree
from menagerie.generators.parsers.parser import Parsed, Parser, try_parse
from menagerie.generators.parsers.registry import ParserSpec

MODEL = "en_core_web_sm"
BATCH = 256  # captions parsed together


@dataclass(frozen=True)
class SpacyOptions:
    """The options of the spaCy parser."""

    model: str = MODEL
    """Name of an installed English pipeline of spaCy, or its folder."""


class DependencyRules(Parser):
    """Makes graphs by the rules of `menagerie.generators.parsers.dependency_rules`."""

    def __init__(self, pipeline: Any) -> None:
        """`pipeline` is a loaded `spacy.Language`."""
        self.pipeline = pipeline

    def identity(self) -> Mapping[str, Any]:
        """The version of the rules, and the name and version of the pipeline."""
        meta = self.pipeline.meta
        model = f"{meta['lang']}_{meta['name']} {meta['version']}"
        return {"parser": "spacy-rules", "version": VERSION, "model": model}

    def parse(self, captions: Sequence[str]) -> Iterator[Parsed]:
        for caption, tree in zip(captions, self.pipeline.pipe(captions, batch_size=BATCH), strict=True):
            yield try_parse(caption, graph_of_tree, [Word(w.text, w.pos_, w.dep_, w.head.i) for w in tree])


def build(options: SpacyOptions) -> DependencyRules:
    way_out = f"install it, for example with python -m spacy download {options.model}, or give spacy-rules:model=FOLDER"
    pipeline = load_pipeline(options.model, ["ner"], "pip install 'binding-menagerie[spacy]'", way_out)
    if missing := {"parser", "tagger"} - set(pipeline.pipe_names):
        raise UserError(f"spaCy's pipeline {options.model!r} has no {min(missing)}; take one that has, {MODEL}")
    return DependencyRules(pipeline)


def load_pipeline(model: str, exclude: Sequence[str], library: str, pipeline: str) -> Any:
    """Load a `spacy.Language`; raises with the way out that `library` or `pipeline` tells if one isn't installed."""
    try:
        import spacy
    except ImportError as error:
        raise UserError(f"spaCy isn't installed; {library}") from error
    try:
        return spacy.load(model, exclude=exclude)
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())[:150]
        raise UserError(f"spaCy can't load the pipeline {model!r} ({said}); {pipeline}") from error


PARSER = ParserSpec("spacy-rules", "dependency trees of spaCy and rules", build, SpacyOptions)


# Maps a text to its tokens, each with its tag in the Penn treebank's notation ("NN", "JJ").
Tagger = Callable[[str], Sequence[tuple[str, str]]]


@lru_cache(maxsize=100_000)
def spacy_tags(text: str) -> list[tuple[str, str]]:
    """The tokens and tags of a text, by spaCy's small English model, as ARO uses it."""
    return [(token.text, token.tag_) for token in spacy_model()(text)]


@cache
def spacy_model() -> Any:
    """Load the model that tags; raises if spaCy or the model isn't installed."""
    way_out = (
        "ARO's word orders and some false captions need its tags: pip install spacy, "
        f"python -m spacy download {MODEL}, or choose others by --benchmarks or --ways"
    )
    return load_pipeline(MODEL, ["parser", "ner", "lemmatizer"], way_out, way_out)

"""Parses captions by rules over spaCy's dependency trees (OC-CLIP, A.3)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import COUNT
from menagerie.generators.parsers.dependency_rules import VERSION, Word, graph_of
from menagerie.generators.parsers.graph_json import NotAGraph, checked
from menagerie.generators.parsers.parser import Parsed, Parser
from menagerie.generators.parsers.registry import ParserSpec


@dataclass(frozen=True)
class SpacyOptions:
    """The options of the spaCy parser."""

    model: str = "en_core_web_sm"
    """Name of an installed English pipeline of spaCy, or its folder."""
    batch: Annotated[int, COUNT] = 256
    """Number of captions parsed together."""


class DependencyRules(Parser):
    """Makes graphs by the rules of `menagerie.generators.parsers.dependency_rules`."""

    def __init__(self, options: SpacyOptions, pipeline: Any) -> None:
        """`pipeline` is a loaded `spacy.Language`."""
        self.options, self.pipeline = options, pipeline

    def identity(self) -> Mapping[str, Any]:
        """The version of the rules, and the name and version of the pipeline."""
        meta = self.pipeline.meta
        model = f"{meta['lang']}_{meta['name']} {meta['version']}"
        return {"parser": "spacy-rules", "version": VERSION, "model": model}

    def parse(self, captions: Sequence[str]) -> Iterator[Parsed]:
        for caption, tree in zip(captions, self.pipeline.pipe(captions, batch_size=self.options.batch), strict=True):
            yield parsed(caption, [Word(w.text, w.pos_, w.dep_, w.head.i) for w in tree])


def parsed(caption: str, words: Sequence[Word]) -> Parsed:
    """Make the graph of a caption's dependency tree. The result is a failure if the tree gives no valid graph."""
    try:
        graph = graph_of(words)
        return Parsed(caption, checked(*graph), "") if graph else Parsed(caption, None, "no nodes: it names no thing")
    except NotAGraph as error:
        return Parsed(caption, None, str(error))


def build(options: SpacyOptions) -> DependencyRules:
    try:
        import spacy
    except ImportError as error:
        raise UserError("the parser spacy-rules needs spaCy: pip install 'binding-menagerie[spacy]'") from error
    try:
        pipeline = spacy.load(options.model, exclude=["ner"])
    except (OSError, ValueError) as error:
        raise UserError(
            f"spaCy can't load the pipeline {options.model!r} ({' '.join(str(error).split())[:150]}); install it, for "
            f"example with python -m spacy download {options.model}, or give spacy-rules:model=FOLDER"
        ) from error
    if missing := {"parser", "tagger"} - set(pipeline.pipe_names):
        raise UserError(f"spaCy's pipeline {options.model!r} has no {min(missing)}; take one that has, en_core_web_sm")
    return DependencyRules(options, pipeline)


PARSER = ParserSpec("spacy-rules", "dependency trees of spaCy and rules", build, SpacyOptions)

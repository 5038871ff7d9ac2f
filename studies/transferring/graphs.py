"""Scene graphs of benchmarks' texts, for models that read them."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from menagerie.generators.benchmarks.photographs import PhotographSet
from menagerie.generators.captions.templates import Caption
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.generators.parsers.registry import DEFAULT, open_parser
from menagerie.generators.sources.captions_file import parse_all


def parsed(
    benches: Sequence[PhotographSet], name: str, parses: Path
) -> tuple[CaptionParser | None, Sequence[PhotographSet]]:
    """The parser of a command line, and the benchmarks with its graphs, all their texts parsed at once.

    The default is none: every text is one node. Raises for captions without an answer.
    """
    if name == DEFAULT:
        return None, benches
    parser = open_parser(name, parses)
    parse_all(parser, list(dict.fromkeys(text for bench in benches for text in texts_of(bench))))
    return parser, [
        bench.reworded({text: Caption(text.text, parser.graph(text.text)) for text in bench.texts}) for bench in benches
    ]


def texts_of(bench: PhotographSet) -> list[str]:
    """The different texts of a benchmark, in its order."""
    return list(dict.fromkeys(text.text for text in bench.texts))


def identity_of(bench: PhotographSet, parser: CaptionParser | None) -> dict[str, Any]:
    """What its graphs add to the identity of a result: parser and graphs; nothing where texts are one node."""
    if parser is None:
        return {}
    graphs = repr([tuple(parser.graph(text)) for text in texts_of(bench)])
    return {"parser": parser.identity(), "graphs": hashlib.sha256(graphs.encode(errors="backslashreplace")).hexdigest()}


def parsed_by(bench: PhotographSet, parser: CaptionParser | None) -> dict[str, Any]:
    """What a result says of its graphs: the parser, and how many texts of the benchmark are one node."""
    if parser is None:
        return {}
    texts = texts_of(bench)
    return {"parser": {"name": parser.name, "texts": len(texts), "fell_back": sum(map(parser.fell_back, texts))}}


def described(parser: CaptionParser | None) -> str:
    """A line on the parser, for a report; empty where texts are one node."""
    return f"{parser.name}: {parser.counts().text}" if parser else ""

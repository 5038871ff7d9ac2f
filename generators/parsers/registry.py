"""Finds parsers of captions by name. A parser is a `PARSER` of a file in this folder; to add one, add a file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import documentation, format_default
from menagerie.envs.core.plugins import Exports
from menagerie.envs.core.validation import build_dataclass
from menagerie.generators.parsers.graph_json import ParseCache
from menagerie.generators.parsers.parser import CaptionParser, Parser

DEFAULT = "one-node"


@dataclass(frozen=True)
class NoOptions:
    """The options of a parser that has none."""


@dataclass(frozen=True)
class ParserSpec:
    """A parser by name, with its options: a frozen dataclass of plain values."""

    name: str
    about: str
    build: Callable[[Any], Parser]
    """Makes the parser; raises `UserError` if a library, a model or an option is missing. Heavy imports happen here."""
    options: type = NoOptions
    kept: bool = True
    """Whether parsing is slow enough for its graphs to be kept on disk."""


EXPORTS = Exports("menagerie.generators.parsers", Path(__file__).parent, "PARSER", "parser")
names: Callable[[], tuple[str, ...]] = EXPORTS.names
load_parser: Callable[[str], ParserSpec] = EXPORTS.load


def open_parser(text: str, parses: Path | None = None, allow_unanswered: bool = False) -> CaptionParser:
    """Open the parser that a text names: "spacy-rules", or with options "llm:model=NAME,url=http://HOST:8000/v1".

    `parses` is the folder in which slow parsers cache graphs. Raises `UserError` for an unknown name, option or value,
    for an unusable folder, and if something that the parser needs isn't installed.
    """
    spec, options = read_parser(text)
    parser = spec.build(options)
    cache = ParseCache(parses, spec.name, parser.identity()) if parses is not None and spec.kept else None
    return CaptionParser(text, parser, cache, allow_unanswered)


def read_parser(text: str) -> tuple[ParserSpec, Any]:
    """Read a parser's spec and its options from "NAME:OPTION=VALUE,OPTION=VALUE". Doesn't make the parser."""
    name, _, given = text.partition(":")
    spec, values = load_parser(name), dict[str, str]()
    for part in filter(None, given.split(",")):
        key, found, value = part.partition("=")
        if not found:
            raise UserError(f"{part!r} is no option of the parser {name}; write {name}:OPTION=VALUE")
        values[key] = value
    return spec, build_dataclass(spec.options, values, f"parser {name}", from_text=True)


def describe() -> str:
    """Describe all parsers and their options for help, one line for each parser and each option."""
    lines = []
    for name in names():
        spec = load_parser(name)
        lines.append(f"{name:<12}{spec.about}")
        texts: Mapping[str, str] = documentation(spec.options)
        for item in fields(spec.options):
            default = f" (default: {format_default(item.default)})" if format_default(item.default) else ""
            lines.append(f"{'':<12}  {item.name}: {texts[item.name]}{default}")
    return "\n".join(lines)

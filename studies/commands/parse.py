"""Make scene graphs of captions; with two parsers, report how far they agree. Run again, it goes on from there."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from menagerie.envs.core.command_help import help_requested, read_options
from menagerie.generators.parsers.registry import describe
from menagerie.generators.sources.captions_file import parse_file


@dataclass(frozen=True)
class Config:
    file: tyro.conf.Positional[Path]
    """A text file with one caption a line, or COCO captions (.json)."""
    parser: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """A parser with its options, NAME or NAME:OPTION=VALUE,OPTION=VALUE; give it twice to compare two."""
    out: Path = Path("graphs.json")
    """The file to write; an existing one is not overwritten."""
    parses: Path = Path("parses")
    """Folder of the graphs that are kept, for every parser."""
    allow_unanswered: bool = False
    """Take captions that a server doesn't answer as one node, in place of an error."""


def read(arguments: list[str], command: str) -> Config:
    """The options, with help that has each parser's own."""
    description = __doc__ or ""
    if help_requested(arguments):
        description += f"\n\nparsers and their options:\n{describe()}"
    return read_options(Config, arguments, command, description)


def run(config: Config) -> int:
    """Print the counts of each parser and the agreement of two, and the path that was written."""
    parse_file(config.file, config.parser, config.out, config.parses, config.allow_unanswered)
    print(config.out)
    return 0

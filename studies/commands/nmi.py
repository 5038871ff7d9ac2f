"""Tell how much the objects in captions tell of their attributes: normalised mutual information, 0 (nothing) to 1."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Config:
    file: tyro.conf.Positional[Path]
    """A text file with one caption a line, COCO captions (.json), or a split file (.h5), whose training captions are
    taken with their own graphs."""
    parser: str = "spacy-rules"
    """The parser of captions, NAME or NAME:OPTION=VALUE,OPTION=VALUE (`menagerie parse --help`)."""
    parses: Path = Path("parses")
    """Folder of the graphs that are kept."""


def run(config: Config) -> int:
    """Print the information and the numbers that it is made of."""
    from menagerie.generators.parsers.registry import open_parser
    from menagerie.generators.sources.information import of_captions, of_split

    if config.file.suffix == ".h5":
        found = of_split(config.file)
    else:
        found = of_captions(config.file, open_parser(config.parser, config.parses, False))
    print(f"normalised mutual information {found.information:.4f}")
    print(f"{found.mentions} mentions: {found.objects} objects, {found.attributes} attributes, {found.pairs} pairs")
    if found.fell_back:
        print(f"{found.fell_back} captions have no graph and count for nothing")
    return 0

"""The command that makes false captions of captions."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from menagerie.envs.core.command_help import help_requested, read_options
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import docstring
from menagerie.generators.false_captions.made import DEFAULTS, WAYS, choose_ways, make_false_captions
from menagerie.generators.parsers.registry import open_parser
from menagerie.generators.sources.captions_file import captions_in_file


@dataclass(frozen=True)
class FalseCaptions:
    """Make false captions of true ones, and a file of them to read: delete the lines that you strike out."""

    file: tyro.conf.Positional[Path]
    """COCO captions (.json), or a text file with one caption a line, each of an image of its own."""
    out: Path
    """The file to write (.jsonl), one false caption a line; an existing one is not overwritten."""
    ways: tuple[str, ...] = DEFAULTS
    """Ways to make them."""
    parser: str = "spacy-rules"
    """The parser of captions, NAME or NAME:OPTION=VALUE,OPTION=VALUE (`menagerie parse --help`)."""
    parses: Path = Path("parses")
    """Folder of the graphs that are kept."""
    data_root: Path | None = None
    """Folder of benchmarks' files (docs/transfer.md): counts the false captions that are texts of theirs."""

    @classmethod
    def read(cls, arguments: list[str], command: str) -> "FalseCaptions":
        """Read the options; the help also has the ways."""
        title = "ways, and how many of 40 were true, ungrammatical or unclear (docs/real-data.md)"
        listed = (f"  {name:<24}{way.about}; {way.wrong * 40:.0f}" for name, way in WAYS.items())
        about = "\n".join(("", "", f"{title}:", *listed)) if help_requested(arguments) else ""
        return read_options(cls, arguments, command, f"{docstring(cls)}{about}")

    def run(self) -> None:
        from menagerie.generators.false_captions.files import write_false_captions
        from menagerie.generators.false_captions.report import print_report, report_rows, texts_in_benchmarks

        if self.out.exists():
            raise UserError(f"{self.out} is there already; choose another --out")
        choose_ways(self.ways)
        images = self.images()
        texts = texts_in_benchmarks(self.data_root) if self.data_root else None
        made = make_false_captions(images, self.ways, open_parser(self.parser, self.parses))
        write_false_captions(self.out, made.captions)
        print_report(report_rows(self.file.name, made, texts))
        print(self.out)

    def images(self) -> list[tuple[str, list[str]]]:
        """The names of images, and their captions."""
        if self.file.suffix.lower() != ".json":
            return [(f"caption {number}", [text]) for number, text in enumerate(captions_in_file(self.file), start=1)]
        from menagerie.generators.sources.coco import read_coco  # late, because it imports torch

        return [(image.name, image.texts) for image in read_coco(self.file)]

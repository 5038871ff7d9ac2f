"""Commands on split files, captions and cards of frozen benchmarks: a class each, with its options and `run`."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from menagerie.envs.core.command_help import help_requested, read_options
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import docstring
from menagerie.envs.core.processes import serve
from menagerie.envs.core.progress import progress_bars
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.findings import Finding
from menagerie.generators.parsers.registry import describe, open_parser
from menagerie.generators.sources.captions_file import parse_file


@dataclass(frozen=True)
class Audit:
    """Check split files and their pictures; exit status 1 if a check fails."""

    files: tyro.conf.Positional[tuple[Path, ...]]
    """Split files, with pictures or without."""
    world: Path | None = None
    """The TOML file of a world of your own, from which splits and images are made again. Its Python files are run; the
    path that a split names is not opened."""

    def run(self) -> bool:
        """Print the findings on each file, or an error if it can't be read; returns whether a check failed."""
        from menagerie.generators.audit.run import audit

        if not self.files:
            raise UserError("audit needs a split file: 'menagerie make' prints the path of its own")
        if self.world is not None:
            load_world(str(self.world))
        serve(("menagerie.envs.render.renderer",))
        failed = False
        with progress_bars("factors", "compared") as progress:
            for path in self.files:
                try:
                    failed |= self.print_findings(path, audit(path, progress, self.world))
                except UserError as error:
                    if len(self.files) == 1:
                        raise
                    print(f"error: {error}", file=sys.stderr)
                    failed = True
        return failed

    def print_findings(self, path: Path, findings: list[Finding]) -> bool:
        """Print the findings on a file, and how many hold and fail; returns whether one fails."""
        table, words = Table("check", "", "detail", title=str(path)), []
        for finding in findings:
            words.append("skipped" if finding.skipped else "ok" if finding.holds else "FAILED")
            table.add_row(finding.claim, words[-1], escape(finding.detail))
        Console().print(table)
        failed, skipped = words.count("FAILED"), words.count("skipped")
        print(f"{words.count('ok')} checks hold, {failed} fail" + f", {skipped} skipped" * bool(skipped))
        return failed > 0


@dataclass(frozen=True)
class Inspect:
    """Report the content of a split file: its recipe, its subsets, and its coverage of the world."""

    file: tyro.conf.Positional[Path]
    """The split file."""

    def run(self) -> None:
        from menagerie.generators.inspection import describe_split, subset_rows
        from menagerie.generators.storage.split_file import read_split

        split = read_split(self.file)
        facts, rows = Table.grid(padding=(0, 2)), subset_rows(split)
        for fact in describe_split(split).items():
            facts.add_row(*fact)
        subsets = Table(box=None, collapse_padding=True, pad_edge=False)  # fits 80 columns
        for i, name in enumerate(rows[0]):
            subsets.add_column(name, justify="right" if i else "left", no_wrap=not i)
        for row in rows:
            subsets.add_row(*row.values())
        Console(markup=False, emoji=False, highlight=False).print(str(self.file), "", facts, "", subsets, sep="\n")


@dataclass(frozen=True)
class Pack:
    """Put images, masks and texts into a split file, so that it can be shared and read without this program."""

    file: tyro.conf.Positional[Path]
    """The split file."""

    def run(self) -> None:
        from menagerie.generators.storage.pack import pack

        with progress_bars("scenes") as progress:
            pack(self.file, progress)
        print(self.file)


@dataclass(frozen=True)
class Export:
    """Write a split in the format of another tool, with a data sheet, Croissant metadata and digests of all
    files."""

    file: tyro.conf.Positional[Path]
    """The split file."""
    out: Path
    """The folder to write, new or of the same export."""
    format: Literal["webdataset", "coco", "coco_instances", "sugarcrepe"]
    """Format of the other tool."""
    subsets: tuple[str, ...] = ()
    """Subsets to write; default: all."""

    def run(self) -> None:
        from menagerie.generators.export.write import export_split

        with progress_bars("export") as progress:
            counts = export_split(self.file, self.format, self.out, self.subsets, progress)
        for name, (samples, records) in counts.items():
            lost = f"; {records - samples} left out, {self.format} has no place for them" if samples < records else ""
            print(f"{name}: {samples} of {records} records{lost}")
        print(self.out)


@dataclass(frozen=True)
class Parse:
    """Make scene graphs of captions. Run again, it continues where it stopped."""

    file: tyro.conf.Positional[Path]
    """A text file with one caption a line, or COCO captions (.json)."""
    parser: str
    """A parser with its options, NAME or NAME:OPTION=VALUE,OPTION=VALUE."""
    out: Path = Path("graphs.json")
    """The file to write; an existing one is not overwritten."""
    parses: Path = Path("parses")
    """Folder of the graphs that are kept, for every parser."""
    allow_unanswered: bool = False
    """Read captions that a server doesn't answer as graphs of one node, instead of raising an error."""

    @classmethod
    def read(cls, arguments: list[str], command: str) -> "Parse":
        """Read the options; the help also has those of each parser."""
        about = f"\n\nparsers and their options:\n{describe()}" if help_requested(arguments) else ""
        return read_options(cls, arguments, command, f"{docstring(cls)}{about}")

    def run(self) -> None:
        parse_file(self.file, self.parser, self.out, self.parses, self.allow_unanswered)
        print(self.out)


@dataclass(frozen=True)
class Nmi:
    """Print the normalised mutual information of objects and attributes in captions, from 0 (independent) to 1."""

    file: tyro.conf.Positional[Path]
    """A text file with one caption a line, COCO captions (.json), or a split file (.h5), whose training captions are
    taken with their own graphs."""
    parser: str = "spacy-rules"
    """The parser of captions, NAME or NAME:OPTION=VALUE,OPTION=VALUE (`menagerie parse --help`)."""
    parses: Path = Path("parses")
    """Folder of the graphs that are kept."""

    def run(self) -> None:
        from menagerie.generators.sources.information import information_of_captions, information_of_split

        if self.file.suffix == ".h5":
            found = information_of_split(self.file)
        else:
            found = information_of_captions(self.file, open_parser(self.parser, self.parses, False))
        print(f"normalised mutual information {found.information:.4f}")
        print(f"{found.mentions} mentions: {found.objects} objects, {found.attributes} attributes, {found.pairs} pairs")
        if found.fell_back:
            print(f"{found.fell_back} captions have no graph and are left out")


@dataclass(frozen=True)
class ImportHf:
    """Make the official files of a benchmark, with images, from parquet or arrow files of the Hugging Face hub, or from
    a webdataset of CLIP_benchmark. Nothing is downloaded."""

    folder: tyro.conf.Positional[Path]
    """The folder, as it was downloaded, or as `datasets` saved it (save_to_disk)."""
    data_root: Path = Path("data")
    """Folder of the benchmarks' files (docs/transfer.md); existing files stay."""
    benchmark: str = ""
    """Name of the benchmark, if it can't be inferred from the columns."""
    part: str = ""
    """Part of a benchmark with several files, such as swap_obj, if it can't be inferred from names."""
    split: str = ""
    """Split to read; default: test, or the only one unless it is called train, validation or dev."""
    form: str = ""
    """A form of your own, file.py:NAME, if no columns that are known fit."""
    allow_missing: bool = False
    """Leave out rows that can't be read, and count them; without it the first is an error."""

    def run(self) -> None:
        from menagerie.generators.hub.write import import_folder

        which = (self.benchmark, self.part, self.split, self.form)
        made = import_folder(self.folder, self.data_root, *which, allow_missing=self.allow_missing)
        for part, records in made.records.items():
            print(f"{' '.join(filter(None, (made.benchmark, part)))}: {records} records")
        print(f"{made.images} images in {self.data_root / made.folder}")
        notes = {"read": ", ".join(made.read), "not read": ", ".join(made.left_out), "needed beside it": made.note}
        for what, text in (notes | {"warning": made.warning}).items():
            if text or what == "read":
                print(f"{what}: {text}")
        root = shlex.quote(str(self.data_root))
        check = f"menagerie transfer --check --benchmarks {made.benchmark} --data-root {root}"
        print(f"to check whether it is complete: {check}")


@dataclass(frozen=True)
class Cards:
    """Verify cards of frozen benchmarks (exit status 1 if one is wrong), or make a leaderboard of verified cards."""

    what: tyro.conf.Positional[Literal["verify", "board"]]
    """verify: seal, benchmark, and numbers against the scores beside it. board: write a page."""
    cards: tyro.conf.Positional[tuple[Path, ...]]
    """The cards, .json."""
    out: Path | None = None
    """The page that `board` writes."""

    def run(self) -> bool:
        if not self.cards:
            raise UserError(f"cards {self.what} needs a card: 'menagerie evaluate MODEL --splits binding-2' writes one")
        if (self.what == "board") != bool(self.out):
            raise UserError("--out names the page of `cards board`: give it with board, and only there")
        from menagerie.studies.scoring.cards import verify_card, write_board

        if self.out:
            write_board(self.cards, self.out)
            print(self.out)
            return False
        refused = False
        for path in self.cards:
            try:
                card = verify_card(path)
                print(f"{path}: {card.model.name} on {card.benchmark['name']} verified")
            except UserError as error:
                print(f"refused: {error}", file=sys.stderr)
                refused = True
        return refused

"""The command `menagerie familiarity`, with its options."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from menagerie.generators.benchmarks.registry import check_benchmark_name
from menagerie.generators.parsers.registry import open_parser, read_parser


@dataclass(frozen=True)
class Familiarity:
    """Count how much of what tells a benchmark's true and false captions apart stands in the captions of a training:
    attributes of objects, relations, whole texts. No image of the benchmark is needed."""

    captions: tyro.conf.Positional[str]
    """A text file with one caption a line, COCO captions (.json), a split file (.h5), whose training captions are taken
    with their own graphs, or the name of a source, of which all captions below --data-root are taken."""
    benchmark: str
    """A benchmark whose records have false captions, or file.py:NAME of your own."""
    data_root: Path = Path("data")
    """Folder of the files of benchmarks and sources (docs/transfer.md)."""
    scores: tuple[Path, ...] = ()
    """Folders that `menagerie transfer` wrote: adds the accuracies of their models by stratum."""
    parser: str = "spacy-rules"
    """The parser of captions, NAME or NAME:OPTION=VALUE,OPTION=VALUE (`menagerie parse --help`)."""
    parses: Path = Path("parses")
    """Folder of the graphs that are kept."""
    out: Path = Path("familiarity.csv")
    """The table to write, with a row for each record."""

    def run(self) -> None:
        check_benchmark_name(self.benchmark)
        read_parser(self.parser)
        from menagerie.studies.scoring.familiarity import report_familiarity, scores_in

        runs = [model for run in self.scores for model in scores_in(run, self.benchmark)]
        parser = open_parser(self.parser, self.parses)
        report_familiarity(self.captions, self.benchmark, self.data_root, runs, parser, self.out)
        print(self.out)

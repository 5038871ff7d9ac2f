"""A study whose arms are models on benchmarks of photographs. Free of torch, pandas and models."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from menagerie.studies.scoring.study import PieceStudy

if TYPE_CHECKING:
    from menagerie.studies.frame.parts import Part
    from menagerie.studies.frame.records import Records


@dataclass(frozen=True)
class BenchmarkStudy(PieceStudy):
    """Its files and its page."""

    on: ClassVar[str] = "benchmark"

    def tables(self, records: "Records") -> None:
        """Write `results.jsonl` and `results.csv`."""
        from menagerie.studies.scoring.benchmark_page import write_tables

        write_tables(records)

    def export(self, records: "Records") -> None:
        """Write `results.tex`."""
        from menagerie.studies.scoring.benchmark_page import write_latex

        write_latex(records)

    def conclude(self, records: "Records") -> None:
        """Print the headlines."""
        from menagerie.studies.scoring.benchmark_page import print_headlines

        super().conclude(records)
        print_headlines(records)

    def page(self, records: "Records") -> "Iterator[Part]":
        """Headlines; the paper's tables with ours above; every number; the surest errors."""
        from menagerie.studies.scoring.benchmark_page import parts

        yield from parts(records)

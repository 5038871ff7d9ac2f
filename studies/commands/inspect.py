"""Report the content of a split file: its recipe, its subsets, and what of its world is in train."""

from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Config:
    file: tyro.conf.Positional[Path]
    """The split file."""
    html: Path | None = None
    """A page to write, with sample images and co-occurrences; an existing file is not overwritten."""


def run(config: Config) -> int:
    """Print facts and subsets; with --html, write the page and print its path."""
    from menagerie.generators.inspection.summary import COLUMNS, facts, open_inspected, subset_rows
    from menagerie.generators.storage.pack import check_free

    if config.html:
        check_free(config.html, "--html")
    split = open_inspected(config.file)
    fact_table = Table.grid(padding=(0, 2))
    subsets = Table(box=None, collapse_padding=True, pad_edge=False)  # fits 80 columns
    for fact in facts(split).items():
        fact_table.add_row(*fact)
    for i, name in enumerate(COLUMNS):
        subsets.add_column(name, justify="right" if i else "left", no_wrap=not i)
    for row in subset_rows(split):
        subsets.add_row(*row.texts)
    Console(markup=False, emoji=False, highlight=False).print(str(config.file), "", fact_table, "", subsets, sep="\n")
    if config.html:
        from menagerie.generators.inspection.split_page import write_page

        write_page(split, config.html)
        print(config.html)
    return 0

"""Blocks in pages of docs that repeat what is kept of published runs, between two comments:

    <!-- sentences NAME -->       the first sentences of its page, as a list
    <!-- table NAME: TABLE -->    a table; `: COLUMN; COLUMN` behind it chooses columns
    <!-- figure NAME: FIGURE -->  a figure
    <!-- csv FILE -->             a table of runs without records; `: COLUMN; COLUMN` as above
    <!-- verdicts -->             all claims of the ledger, with the verdicts of published runs
    ...
    <!-- end -->

Code between fences is left as it is.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.reading import read_text
from menagerie.studies.ledger.table import ledger_page, shipped_rows
from menagerie.studies.published.markdown import END, FIGURE, SENTENCES, TABLE, table_text
from menagerie.studies.published.pack import read_frame

PAGE = "page.md"
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
FENCED = r"^```.*?^```"
BLOCK = re.compile(rf"{FENCED}|<!-- (\w+)(?: ([^\n]*?))? -->\n((?:(?!<!--).)*?){END}", re.DOTALL | re.MULTILINE)
OTHERS = {"<!-- reports -->"}  # comments that are no blocks
CELL = re.compile(r"(?<!\\)\|")


def filled(path: Path, measured: Path) -> str:
    """Return the text of a page of docs whose blocks repeat what the folder `measured` keeps. Raises for a comment that
    is no block, and for anything that a block names and that isn't there."""
    text = read_text(path)

    def fill(found: re.Match[str]) -> str:
        kind, words, _ = found.groups()
        if kind is None:
            return found[0]
        try:
            content = KINDS[choose("kind of block", kind, KINDS)](path, measured, words or "")
        except UserError as error:
            raise error.at(f"{path}, line {text.count(chr(10), 0, found.start()) + 1}") from error
        return f"{found[0].partition(chr(10))[0]}\n{content}\n{END}"

    if strange := set(COMMENT.findall(BLOCK.sub("", text))) - OTHERS:
        raise UserError(f"{path}: {min(strange)} begins or ends no block (studies/published/blocks.py says what does)")
    return BLOCK.sub(fill, text)


def sentences_block(path: Path, measured: Path, words: str) -> str:
    kept = kept_part(measured, words, SENTENCES, "")
    return "\n".join(f"- {line.strip('*')}" for line in kept.splitlines() if line)


def table_block(path: Path, measured: Path, words: str) -> str:
    name, part, columns = split_words(words, 3)
    return chosen_columns(kept_part(measured, name, TABLE, part), columns)


def figure_block(path: Path, measured: Path, words: str) -> str:
    name, part = split_words(words, 2)
    says = kept_part(measured, name, FIGURE, part)
    return f"![{' '.join(says.split())}]({os.path.relpath(measured / name / f'{part}.svg', path.parent)})"


def csv_block(path: Path, measured: Path, words: str) -> str:
    name, columns = split_words(words, 2)
    file = measured / choose("table", name, [its.name for its in measured.glob("*.csv")])
    return chosen_columns(table_text(read_frame(read_text(file), file)), columns)


def verdicts_block(path: Path, measured: Path, words: str) -> str:
    return ledger_page(shipped_rows(measured))


KINDS: dict[str, Callable[[Path, Path, str], str]] = {
    **{SENTENCES: sentences_block, TABLE: table_block, FIGURE: figure_block},
    **{"csv": csv_block, "verdicts": verdicts_block},
}


def split_words(words: str, number: int) -> list[str]:
    """Split what a block names into so many texts, of which the last ones may be empty."""
    found = words.split(": ", number - 1)
    return [*found, *[""] * (number - len(found))]


def kept_part(measured: Path, name: str, kind: str, part: str) -> str:
    """Return a part of a run's kept page."""
    page = measured / choose("kept page", name, [its.parent.name for its in measured.glob(f"*/{PAGE}")]) / PAGE
    marks = re.findall(rf"<!-- {kind} ?(\S*) -->\n(.*?)\n{END}", read_text(page), re.DOTALL)
    parts = {its: text for its, text in marks}
    return parts[choose(f"{kind} of {name}", part, parts)]


def chosen_columns(table: str, columns: str) -> str:
    """Return a table with the named columns, in their order; without names as it is."""
    if not columns:
        return table
    rows = [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in table.splitlines() if line[0:1] == "|"]
    places = [rows[0].index(choose("column", name, rows[0])) for name in columns.split("; ")]
    below = [line for line in table.splitlines() if line[0:1] != "|"]
    return "\n".join([f"| {' | '.join(row[place] for place in places)} |" for row in rows] + below)


def pages_of_docs(measured: Path) -> Iterator[Path]:
    """Yield README and the pages of docs, whose folder is that of `measured`, without those that are kept of runs."""
    docs = measured.parent
    pages = (docs.parent / "README.md", *sorted(docs.rglob("*.md")))
    yield from (page for page in pages if page.exists() and measured not in page.parents)


def figures_shown(pages: Iterable[Path]) -> set[tuple[str, str]]:
    """Return the figures that pages show: runs and names."""
    blocks = (found for page in pages for found in BLOCK.finditer(read_text(page)) if found[1] == FIGURE)
    return {tuple(split_words(found[2] or "", 2)) for found in blocks}

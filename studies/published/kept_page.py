"""What docs keep of a published run: its page in Markdown. Pages of docs repeat its sentences and tables, and show its
figures, in blocks that name the run:

    <!-- sentences NAME -->, <!-- table NAME: TABLE --> or <!-- figure NAME: FIGURE -->
    ...
    <!-- end -->

After TABLE, `: COLUMN; COLUMN` chooses columns. <!-- csv FILE --> repeats a table of runs that have no records.
<!-- verdicts ledger --> has the claims that ship, with the verdicts of the runs called ledger-CLAIM.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.reading import read_text
from menagerie.studies.frame.page import DrawnParts
from menagerie.studies.ledger.table import ledger_page, shipped_rows

PAGE = "page.md"
SENTENCES, TABLE, FIGURE, CSV, VERDICTS = "sentences", "table", "figure", "csv", "verdicts"
END = "<!-- end -->"
KIND, CONTENT = f"<!-- ({SENTENCES}|{TABLE}|{FIGURE}|{CSV}|{VERDICTS})", rf" -->\n(.*?){END}"
OF_PAGE = re.compile(rf"{KIND}(?: ([\w.-]+))?{CONTENT}", re.DOTALL)
BLOCK = re.compile(rf"{KIND} ([\w.-]+)(?:: ([\w.-]+))?(?:: (.+?))?{CONTENT}", re.DOTALL)
MINUS = re.compile(r"(?<![\w.])-(?=\d)")
CELL = re.compile(r"(?<!\\)\|")


def page_in_markdown(title: str, origin: str, drawn: DrawnParts) -> str:
    """Write a study's page: its answer, and all tables and texts. Of figures it has what they show in words."""
    said = [part for part in drawn.answer if part["kind"] == "sentence"]
    figures = [part for part in drawn.answer if part["kind"] != "sentence"]
    texts = [f"# {title}", origin, marked(SENTENCES, "", "\n\n".join(map(part_text, said)))]
    return "\n\n".join([*texts, *filter(None, map(part_text, [*figures, *drawn.rest]))]) + "\n"


def part_text(part: Mapping[str, Any]) -> str:
    """Write a part in Markdown; parts that only have pictures are left out."""
    match part["kind"]:
        case "sentence":
            return f"**{plain_text(part['text'])}**"
        case "paragraph":
            return plain_text(part["text"])
        case "heading":
            return f"{'#' * part['level']} {part['title']}\n\n{plain_text(part['text'])}".strip()
        case "table":
            table, flags = table_text(part["frame"]), f"\n\n{plain_text(part['flags'])}" * bool(part["flags"])
            return f"{said_of(part)}{marked(TABLE, part['name'], table + flags)}\n\n{part['numbers']}".rstrip()
        case "chart" | "figure":
            return marked(FIGURE, part["name"], said_of(part).strip() or part["name"])
        case "facts":
            return "\n".join(f"- {name}: {plain_text(text)}" for name, text in part["facts"].items())
    return ""


def said_of(part: Mapping[str, Any]) -> str:
    return "".join(f"{plain_text(text)}\n\n" for text in (part["folded"], part["says"]) if text)


def plain_text(text: str) -> str:
    """Return a marked-up text as Markdown."""
    return Markup(re.sub("</?code>", "`", text)).unescape()


def table_text(frame: pd.DataFrame) -> str:
    """Write a table of texts, with minus signs as in print; undefined cells are empty."""
    texts = frame.astype(object).where(frame.notna(), "").astype(str)
    cells = texts.map(lambda text: MINUS.sub("−", text.replace("|", r"\|")))
    rows = [[str(name) for name in frame.columns], ["---"] * frame.shape[1], *cells.to_numpy().tolist()]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def marked(kind: str, name: str, text: str) -> str:
    return f"<!-- {f'{kind} {name}'.strip()} -->\n{text}\n{END}"


def filled(path: Path, measured: Path) -> str:
    """Return the text of a page of docs whose blocks repeat the pages that `measured` keeps. Raises for a run, a table
    or a column that isn't there."""

    def fill(found: re.Match[str]) -> str:
        kind, run, part, columns, _ = found.groups()
        try:
            text = block_text(path, measured / run, kind, part or "", columns)
        except UserError as error:
            raise error.at(path) from error
        return f"{found[0].partition(chr(10))[0]}\n{text}\n{END}"

    return BLOCK.sub(fill, read_text(path))


def block_text(path: Path, folder: Path, kind: str, part: str, columns: str | None) -> str:
    """Return what a block has between its marks."""
    if kind == VERDICTS:
        return ledger_page(shipped_rows(folder.parent, folder.name))
    if kind == CSV:
        return chosen_columns(table_text(pd.read_csv(folder, dtype=str, keep_default_na=False)), columns or part)
    if not (page := folder / PAGE).exists():
        raise UserError(f"{page} isn't there; `menagerie published write {folder.name}` writes it")
    parts = {its[1]: its[2] for its in OF_PAGE.findall(read_text(page)) if its[0] == kind}
    text = parts[choose(f"{kind} of {folder.name}", part, parts)].rstrip("\n")
    if kind == FIGURE:
        return f"![{' '.join(text.split())}]({os.path.relpath(folder / f'{part}.svg', path.parent)})"
    return chosen_columns(text, columns)


def chosen_columns(table: str, columns: str | None) -> str:
    """Return a table with the named columns, in their order; without names as it is."""
    if not columns:
        return table
    rows = [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in table.splitlines() if line[0:1] == "|"]
    places = [rows[0].index(choose("column", name, rows[0])) for name in columns.split("; ")]
    below = [line for line in table.splitlines() if line[0:1] != "|"]
    return "\n".join(["| " + " | ".join(row[place] for place in places) + " |" for row in rows] + below)


def pages_of_docs(docs: Path, measured: Path) -> Iterator[Path]:
    """Yield README and the pages of docs, without those that are kept of runs."""
    pages = (docs.parent / "README.md", *sorted(docs.rglob("*.md")))
    yield from (page for page in pages if page.exists() and measured not in page.parents)


def figures_shown(pages: Iterable[Path]) -> set[tuple[str, str]]:
    """Return the figures that pages show: runs and names."""
    found = (BLOCK.findall(read_text(page)) for page in pages)
    return {(run, part) for its in found for kind, run, part, *_ in its if kind == FIGURE}

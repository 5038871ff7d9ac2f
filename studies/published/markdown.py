"""A study's page in Markdown, with its tables and without its pictures. Tables, figures and the first sentences stand
between comments, by which pages of docs find them (blocks.py)."""

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd
from markupsafe import Markup

from menagerie.studies.analysis.tables import markdown_row
from menagerie.studies.frame.page import DrawnParts

SENTENCES, TABLE, FIGURE = "sentences", "table", "figure"
END = "<!-- end -->"
MINUS = re.compile(r"(?<![\w.`-])-(?=\d)")
COUNTS = "Records behind the numbers, and in brackets their animal pairs:"


def page_in_markdown(title: str, origin: str, drawn: DrawnParts) -> str:
    """Write a study's page: its answer, then all texts and tables; of figures, what they show in words."""
    said = [part_in_markdown(part) for part in drawn.answer if part["kind"] == "sentence"]
    figures = [part for part in drawn.answer if part["kind"] != "sentence"]
    texts = [f"# {title}", origin, *([marked(SENTENCES, "", "\n\n".join(said))] if said else [])]
    return "\n\n".join([*texts, *map(part_in_markdown, [*figures, *drawn.rest])]) + "\n"


def part_in_markdown(part: Mapping[str, Any]) -> str:
    """Write a part in Markdown."""
    match part["kind"]:
        case "sentence":
            return f"**{MINUS.sub('−', without_tags(part['text']))}**"
        case "paragraph":
            return without_tags(part["text"])
        case "heading":
            return f"{'#' * part['level']} {part['title']}\n\n{without_tags(part['text'])}".strip()
        case "table":
            table, flags = table_text(part["frame"]), f"\n\n{without_tags(part['flags'])}." * bool(part["flags"])
            counts = f"\n\n{COUNTS} {part['numbers']}." * bool(part["numbers"])
            return f"{said_of(part)}{marked(TABLE, part['name'], table + flags)}{counts}"
        case "facts":
            return "\n".join(f"- {name}: {without_tags(text)}" for name, text in part["facts"].items())
        case "cases":
            return "Tables by what images show, and records of which a model was surest, are on the study's own page."
    return marked(FIGURE, part["name"], said_of(part).strip() or part["name"])


def said_of(part: Mapping[str, Any]) -> str:
    return "".join(f"{without_tags(text)}\n\n" for text in (part["folded"], part["says"]) if text)


def without_tags(text: str) -> str:
    """Return a marked-up text as Markdown."""
    return Markup(re.sub("</?code>", "`", text)).unescape()


def table_text(frame: pd.DataFrame) -> str:
    """Write a table of texts, with minus signs as in print; undefined cells are empty."""
    rows = [list(frame.columns), ["---"] * frame.shape[1], *frame.astype(object).where(frame.notna(), "").to_numpy()]
    return "\n".join(markdown_row(MINUS.sub("−", str(cell)) for cell in row) for row in rows)


def marked(kind: str, name: str, text: str) -> str:
    return f"<!-- {f'{kind} {name}'.strip()} -->\n{text}\n{END}"

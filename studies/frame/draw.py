"""Draws the parts of a page: for each kind, a function that writes the part's files and returns its content for the
page's template."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup, escape

from menagerie.envs.core.files import write_text
from menagerie.studies.analysis.tables import (
    meaning_of_flags,
    to_csv,
)
from menagerie.studies.analysis.words import CHANCES
from menagerie.studies.frame.arm import label_text
from menagerie.studies.frame.cases import error_sections, pictures_of
from menagerie.studies.frame.charts import write_chart
from menagerie.studies.frame.curves import RunCurve, equal_losses_note, training_curves
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.figures import draw_bars, draw_front, draw_heat_map, draw_lines
from menagerie.studies.frame.layout import Sheet, is_number
from menagerie.studies.frame.parts import (
    FIGURES,
    TABLES,
    Bars,
    Cases,
    Chart,
    Curves,
    Facts,
    FigurePart,
    FilePart,
    Front,
    Heading,
    HeatMap,
    Lines,
    OwnFigure,
    Paragraph,
    Part,
    Pictures,
    Rows,
    Sentence,
    Table,
)
from menagerie.studies.report.figures import write_figure
from menagerie.studies.report.tables import styled_table

LISTED = ".parts"
"""The file in a study's folder that lists the files of its page's parts, one per line."""
OF_PART = re.compile(r"[\w.-]+\.(csv|tex)|figures/[\w.-]+\.(png|svg|csv)")


def drop_former(parts: Iterable[Part], out: Path) -> None:
    """Delete the files of parts of the folder's earlier page that aren't among `parts`: tables of the earlier page
    would seem to be this one's."""
    names = {name for part in parts if isinstance(part, FilePart) for name in part_files(part)}
    listed = out / LISTED
    former = set(listed.read_text(errors="replace").splitlines()) if listed.exists() else set()
    for name in filter(OF_PART.fullmatch, former - names):
        (out / name).unlink(missing_ok=True)
    write_text(listed, "".join(f"{name}\n" for name in sorted(names)))


def part_files(part: FilePart) -> list[str]:
    """List the files in which a part's table or figure may be written, relative to the study's folder."""
    tables = [] if isinstance(part, FIGURES) else [f"{part.name}.csv"]
    figures = [] if isinstance(part, TABLES) else [f"figures/{part.name}.{kind}" for kind in ("png", "svg", "csv")]
    return tables + figures


@singledispatch
def write_page_part(part: Part, out: Path) -> dict[str, Any]:
    """Write the files of a part into a study's folder; returns the part's kind and content for the template of
    pages."""
    raise TypeError(f"nothing draws a {type(part).__name__}")


@write_page_part.register
def _(part: Sentence | Paragraph | Heading, out: Path) -> dict[str, Any]:
    return vars(part) | {"kind": type(part).__name__.lower(), "text": mark_up(part.text)}


@write_page_part.register
def _(part: Facts, out: Path) -> dict[str, Any]:
    return {"kind": "facts", "facts": {name: mark_up(text) for name, text in part.facts.items()}}


@write_page_part.register
def _(part: Rows, out: Path) -> dict[str, Any]:
    frame = pd.DataFrame([list(row) for row in part.rows], columns=list(part.header))
    to_csv(out / f"{part.name}.csv", frame)
    chances = {name: CHANCES[name] for name in part.header if name in CHANCES}
    return table_content(part, frame, 1 if part.shaded else None, chances)


@write_page_part.register
def _(part: Table, out: Path) -> dict[str, Any]:
    sheet = Sheet(part)
    to_csv(out / f"{part.name}.csv", estimates_frame(sheet.numbers.names, sheet.numbers.found))
    accuracies = not (part.against or part.intervals or part.beside)
    notes = {"In all rows": sheet.common_labels, "Without records": sheet.empty}
    says = " ".join([part.says, *(f"{name}: {text}." for name, text in notes.items() if text)])
    flags = meaning_of_flags(sheet.frame)
    content = table_content(part, sheet.frame, len(sheet.labels) if accuracies else None, sheet.chances)
    return content | {"says": mark_up(says.strip()), "flags": flags, "numbers": sheet.sizes}


def table_content(
    part: FilePart, frame: pd.DataFrame, shaded: int | None, chances: Mapping[str, float]
) -> dict[str, Any]:
    """Return a table's content for the page; columns from `shaded` on get the colours of accuracies."""
    content = {"kind": "table", **named_content(part), "html": styled_table(frame, shaded, chances)}
    return content | {"frame": frame, "caption": part.says.replace("`", ""), "flags": "", "numbers": ""}


DRAWN = {Lines: draw_lines, Bars: draw_bars, HeatMap: draw_heat_map, Front: draw_front}


@write_page_part.register
def _(part: FigurePart, out: Path) -> dict[str, Any]:
    if not len(part.records.scores):
        return nothing_yet(part)
    drawn = next(draw(part) for kind, draw in DRAWN.items() if isinstance(part, kind))
    numbers = estimates_frame(drawn.names, drawn.found)
    return chart_content(replace(part, says=f"{part.says} {drawn.note}".strip()), out, drawn.chart, numbers)


@write_page_part.register
def _(part: Chart, out: Path) -> dict[str, Any]:
    return chart_content(part, out, part.chart, part.chart.data)


@write_page_part.register
def _(part: Pictures, out: Path) -> dict[str, Any]:
    return {"kind": "pictures", **named_content(part), "pictures": pictures_of(part, out)}


@write_page_part.register
def _(part: Cases, out: Path) -> dict[str, Any]:
    return {"kind": "cases", **named_content(part), "sections": error_sections(part, out)}


@write_page_part.register
def _(part: Curves, out: Path) -> dict[str, Any]:
    curves = [
        RunCurve(str(arm.place[part.panels]), run_label(part, arm.place), part.records.folder(arm))
        for arm, _ in part.records.results
    ]
    chart = training_curves(curves, 100 * part.chance)
    said = replace(part, says=f"{part.says} {equal_losses_note(curves)}".strip())
    return nothing_yet(part) if chart is None else chart_content(said, out, chart)


def run_label(part: Curves, place: Mapping[str, Any]) -> str:
    """Name a run's line by the values of its labels; a number has the label's name before it."""
    shown = {name: place[name] for name in part.labels if name in place}
    return ", ".join(f"{name.replace('_', ' ')} " * is_number(v) + label_text(name, v) for name, v in shown.items())


@write_page_part.register
def _(part: OwnFigure, out: Path) -> dict[str, Any]:
    if (figure := part.figure()) is None:
        return nothing_yet(part)
    file = out / "figures" / f"{part.name}.png"
    if numbers := part.numbers():
        to_csv(file.with_suffix(".csv"), pd.DataFrame(numbers))
    alt = part.says.replace("`", "") or part.name
    return {"kind": "figure", **named_content(part), "uri": write_figure(file, figure), "alt": alt}


def nothing_yet(part: FilePart) -> dict[str, Any]:
    return {"kind": "paragraph", "text": mark_up(f"{part.says} Nothing is there to draw yet.")}


def estimates_frame(names: Sequence[str], found: Mapping[Any, Estimate]) -> pd.DataFrame:
    """Return a row for each estimate: its labels, and its numbers as shares, as in results.csv."""
    return pd.DataFrame([dict(zip(names, key, strict=True)) | its._asdict() for key, its in found.items()])


def chart_content(part: FilePart, out: Path, chart: Any, numbers: Any = None) -> dict[str, Any]:
    """Write a chart as PNG and SVG, and its numbers as CSV; returns its content for the page."""
    file = out / "figures" / f"{part.name}.png"
    specification = write_chart(file, chart)
    if isinstance(numbers, pd.DataFrame):
        to_csv(file.with_suffix(".csv"), numbers)
    return {"kind": "chart", **named_content(part), "specification": specification}


def named_content(part: FilePart) -> dict[str, Any]:
    """Return the content that all parts with files have: name, sentence, and the line behind which the part is
    hidden."""
    return {"name": part.name, "says": mark_up(part.says), "folded": mark_up(part.folded)}


def mark_up(text: str) -> Markup:
    """Escape a text for pages; text in backticks becomes `<code>`."""
    pieces = (Markup("<code>{}</code>").format(its) if k % 2 else escape(its) for k, its in enumerate(text.split("`")))
    return Markup("").join(pieces)

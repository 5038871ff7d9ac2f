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
from matplotlib.figure import Figure

from menagerie.envs.core.files import write_text
from menagerie.studies.analysis.tables import (
    DASH,
    WAITING,
    meaning_of_flags,
    separate_numbers,
    to_csv,
    to_latex,
    to_rows,
)
from menagerie.studies.analysis.words import CHANCES
from menagerie.studies.frame.arm import label_text
from menagerie.studies.frame.bars import draw_bars, draw_heat_map
from menagerie.studies.frame.cases import error_sections, pictures_of
from menagerie.studies.frame.charts import write_chart
from menagerie.studies.frame.curves import RunCurve, equal_losses_note, training_curves
from menagerie.studies.frame.figures import DrawnFigure, draw_lines, draw_scatter
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
    Heading,
    HeatMap,
    Lines,
    OwnFigure,
    Paragraph,
    Part,
    Pictures,
    Rows,
    Scatter,
    Sentence,
    Table,
)
from menagerie.studies.report.figures import write_figure

NUMBER = re.compile(rf"[\d+<>-]|{DASH}|{WAITING}")
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
    tables = [] if isinstance(part, FIGURES) else [f"{part.name}.{kind}" for kind in ("csv", "tex")]
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
    chances = {name: CHANCES[name] for name in part.header if name in CHANCES}
    return table_content(part, out, frame, shaded=1 if part.shaded else None, chances=chances)


@write_page_part.register
def _(part: Table, out: Path) -> dict[str, Any]:
    sheet = Sheet(part)
    frame = sheet.frame
    accuracies = not (part.against or part.intervals or part.beside)
    notes = {"In all rows": sheet.common_labels, "Without records": sheet.empty}
    says = " ".join([part.says, *(f"{name}: {text}." for name, text in notes.items() if text)])
    flags = meaning_of_flags(frame)
    shaded = len(sheet.labels) if accuracies else None
    content = {"says": mark_up(says.strip()), "flags": f"{flags[:1].upper()}{flags[1:]}", "numbers": sheet.sizes}
    return table_content(part, out, frame, shaded=shaded, chances=sheet.chances, **content)


def table_content(part: FilePart, out: Path, frame: pd.DataFrame, **content: Any) -> dict[str, Any]:
    """Write a table as CSV and LaTeX; returns its content for the page."""
    to_csv(out / f"{part.name}.csv", separate_numbers(frame))
    latex = to_latex(frame, part.says.replace("`", ""))
    write_text(out / f"{part.name}.tex", latex)
    style = "words" if frame.shape[1] > 1 and not frame.iloc[:, 1].str.match(NUMBER).any() else ""
    plain = {"chances": {}, "numbers": "", "flags": "", "latex": latex, "style": style}
    return {"kind": "table", **named_content(part), "rows": to_rows(frame), **plain, **content}


DRAWN = {Lines: draw_lines, Bars: draw_bars, HeatMap: draw_heat_map, Scatter: draw_scatter}


@write_page_part.register
def _(part: FigurePart, out: Path) -> dict[str, Any]:
    if not len(part.records.scores):
        return figure_content(part, out, None)
    return estimates_content(part, out, next(draw(part) for kind, draw in DRAWN.items() if isinstance(part, kind)))


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
    says = f"{part.says} {equal_losses_note(curves)}".strip()
    return figure_content(replace(part, says=says), out, training_curves(curves, 100 * part.chance))


def run_label(part: Curves, place: Mapping[str, Any]) -> str:
    """Name a run's line by the values of its labels; a number has the label's name before it."""
    shown = {name: place[name] for name in part.labels if name in place}
    return ", ".join(f"{name.replace('_', ' ')} " * is_number(v) + label_text(name, v) for name, v in shown.items())


@write_page_part.register
def _(part: OwnFigure, out: Path) -> dict[str, Any]:
    return figure_content(part, out, part.figure(), part.numbers())


@write_page_part.register
def _(part: Chart, out: Path) -> dict[str, Any]:
    return chart_content(part, out, part.chart)


def estimates_content(part: FilePart, out: Path, drawn: DrawnFigure) -> dict[str, Any]:
    """Write a figure of estimates, and the estimates as CSV; returns its content for the page."""
    numbers = [
        dict(zip(drawn.names, key, strict=True)) | its._asdict()  # shares, as in results.csv
        for key, its in drawn.found.items()
    ]
    return figure_content(replace(part, says=f"{part.says} {drawn.note}".strip()), out, drawn.figure, numbers)


def figure_content(
    part: FilePart, out: Path, figure: Figure | None, numbers: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Write a figure as PNG and SVG, and its numbers as CSV; returns its content for the page. Without a figure that is
    a sentence that says so."""
    if figure is None:
        return {"kind": "paragraph", "text": mark_up(f"{part.says} Nothing is there to draw yet.")}
    file = out / "figures" / f"{part.name}.png"
    uri = write_figure(file, figure)
    if numbers:
        to_csv(file.with_suffix(".csv"), pd.DataFrame(numbers))
    return {"kind": "figure", **named_content(part), "uri": uri, "alt": part.says.replace("`", "") or part.name}


def chart_content(part: FilePart, out: Path, chart: Any) -> dict[str, Any]:
    """Write a chart as PNG and SVG, and its frame as CSV; returns its content for the page."""
    specification = write_chart(out / "figures" / f"{part.name}.png", chart)
    return {"kind": "chart", **named_content(part), "specification": specification}


def named_content(part: FilePart) -> dict[str, Any]:
    """Return the content that all parts with files have: name, sentence, and the line behind which the part is
    hidden."""
    return {"name": part.name, "says": mark_up(part.says), "folded": mark_up(part.folded)}


def mark_up(text: str) -> Markup:
    """Escape a text for pages; text in backticks becomes `<code>`."""
    pieces = (Markup("<code>{}</code>").format(its) if k % 2 else escape(its) for k, its in enumerate(text.split("`")))
    return Markup("").join(pieces)

"""Draws the parts of a page. For each kind there is a function that writes the part's files and returns what the page's
template takes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from menagerie.envs.core.figures import write_figure
from menagerie.envs.core.files import write_text
from menagerie.studies.analysis.tables import DASH, WAITING, meaning_of_flags, numbers_apart, to_csv, to_latex, to_rows
from menagerie.studies.analysis.words import CHANCES
from menagerie.studies.frame.arm import text_of
from menagerie.studies.frame.bars import bars, heat_map
from menagerie.studies.frame.cases import pictures_of, sections
from menagerie.studies.frame.curves import Curve, alike, training_curves
from menagerie.studies.frame.figures import Drawn, lines, scatter
from menagerie.studies.frame.layout import Sheet, counts
from menagerie.studies.frame.parts import (
    FIGURES,
    TABLES,
    Bars,
    Cases,
    Curves,
    Facts,
    Figured,
    Heading,
    HeatMap,
    Lines,
    Named,
    OwnFigure,
    Paragraph,
    Part,
    Pictures,
    Rows,
    Scatter,
    Sentence,
    Table,
)

NUMBER = re.compile(rf"[\d+<>-]|{DASH}|{WAITING}")
LISTED = ".parts"
"""The file in a study's folder that lists the files of its page's parts, one per line."""
OF_PART = re.compile(r"[\w.-]+\.(csv|tex)|figures/[\w.-]+\.(png|svg|csv)")


def drop_former(parts: Iterable[Part], out: Path) -> None:
    """Delete the files of parts that the folder's earlier page had and that aren't among `parts`. With other options a
    page may have fewer, and tables of the earlier one would seem to be its own."""
    names = {name for part in parts if isinstance(part, Named) for name in files_of(part)}
    listed = out / LISTED
    former = set(listed.read_text(errors="replace").splitlines()) if listed.exists() else set()
    for name in filter(OF_PART.fullmatch, former - names):
        (out / name).unlink(missing_ok=True)
    write_text(listed, "".join(f"{name}\n" for name in sorted(names)))


def files_of(part: Named) -> list[str]:
    """List the files in which a part's table or figure may be written, relative to the study's folder."""
    tables = [] if isinstance(part, FIGURES) else [f"{part.name}.{kind}" for kind in ("csv", "tex")]
    figures = [] if isinstance(part, TABLES) else [f"figures/{part.name}.{kind}" for kind in ("png", "svg", "csv")]
    return tables + figures


@singledispatch
def written(part: Part, out: Path) -> dict[str, Any]:
    """Write the files of a part into a study's folder; returns what the template of pages takes: the part's kind and
    content."""
    raise TypeError(f"nothing draws a {type(part).__name__}")


@written.register
def _(part: Sentence | Paragraph | Heading, out: Path) -> dict[str, Any]:
    return vars(part) | {"kind": type(part).__name__.lower(), "text": marked(part.text)}


@written.register
def _(part: Facts, out: Path) -> dict[str, Any]:
    return {"kind": "facts", "facts": {name: marked(text) for name, text in part.facts.items()}}


@written.register
def _(part: Rows, out: Path) -> dict[str, Any]:
    frame = pd.DataFrame([list(row) for row in part.rows], columns=list(part.header))
    chances = {name: CHANCES[name] for name in part.header if name in CHANCES}
    return of_table(part, out, frame, shaded=1 if part.shaded else None, chances=chances)


@written.register
def _(part: Table, out: Path) -> dict[str, Any]:
    sheet = Sheet(part)
    frame = sheet.frame
    accuracies = not (part.against or part.intervals or part.beside)
    notes = {"In all rows": sheet.same, "Without records": sheet.empty}
    says = " ".join([part.says, *(f"{name}: {text}." for name, text in notes.items() if text)])
    flags = meaning_of_flags(frame)
    shaded = len(sheet.labels) if accuracies else None
    content = {"says": marked(says.strip()), "flags": f"{flags[:1].upper()}{flags[1:]}", "numbers": sheet.sizes}
    return of_table(part, out, frame, shaded=shaded, chances=sheet.chances, **content)


def of_table(part: Named, out: Path, frame: pd.DataFrame, **content: Any) -> dict[str, Any]:
    """Write a table as CSV and LaTeX; returns it for the page."""
    to_csv(out / f"{part.name}.csv", numbers_apart(frame))
    latex = to_latex(frame, part.says.replace("`", ""))
    write_text(out / f"{part.name}.tex", latex)
    style = "words" if frame.shape[1] > 1 and not frame.iloc[:, 1].str.match(NUMBER).any() else ""
    plain = {"chances": {}, "numbers": "", "flags": "", "latex": latex, "style": style}
    return {"kind": "table", **named(part), "rows": to_rows(frame), **plain, **content}


DRAWN = {Lines: lines, Bars: bars, HeatMap: heat_map, Scatter: scatter}


@written.register
def _(part: Figured, out: Path) -> dict[str, Any]:
    if not len(part.records.scores):
        return of_figure(part, out, None)
    return of_records(part, out, next(draw(part) for kind, draw in DRAWN.items() if isinstance(part, kind)))


@written.register
def _(part: Pictures, out: Path) -> dict[str, Any]:
    return {"kind": "pictures", **named(part), "pictures": pictures_of(part, out)}


@written.register
def _(part: Cases, out: Path) -> dict[str, Any]:
    return {"kind": "cases", **named(part), "sections": sections(part, out)}


@written.register
def _(part: Curves, out: Path) -> dict[str, Any]:
    curves = [
        Curve(str(arm.place[part.panels]), run_label(part, arm.place), part.records.folder(arm))
        for arm, _ in part.records.results
    ]
    says = f"{part.says} {alike(curves)}".strip()
    return of_figure(replace(part, says=says), out, training_curves(curves, 100 * part.chance))


def run_label(part: Curves, place: Mapping[str, Any]) -> str:
    """Name a run's line by the values of its labels; only numbers have the label's name before them."""
    shown = {name: place[name] for name in part.labels if name in place}
    return ", ".join(f"{name.replace('_', ' ')} " * counts(v) + text_of(name, v) for name, v in shown.items())


@written.register
def _(part: OwnFigure, out: Path) -> dict[str, Any]:
    return of_figure(part, out, part.figure(), part.numbers())


def of_records(part: Named, out: Path, drawn: Drawn) -> dict[str, Any]:
    """Write a figure of estimates, and these as CSV; returns it for the page."""
    numbers = [
        dict(zip(drawn.names, key, strict=True)) | its._asdict()  # shares, as in results.csv
        for key, its in drawn.found.items()
    ]
    return of_figure(replace(part, says=f"{part.says} {drawn.note}".strip()), out, drawn.figure, numbers)


def of_figure(
    part: Named, out: Path, figure: Figure | None, numbers: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Write a figure as PNG and SVG, and its numbers as CSV; returns it for the page. Without a figure the page gets a
    sentence that says so."""
    if figure is None:
        return {"kind": "paragraph", "text": marked(f"{part.says} Nothing is there to draw yet.")}
    file = out / "figures" / f"{part.name}.png"
    uri = write_figure(file, figure)
    if numbers:
        to_csv(file.with_suffix(".csv"), pd.DataFrame(numbers))
    return {"kind": "figure", **named(part), "uri": uri, "alt": part.says.replace("`", "") or part.name}


def named(part: Named) -> dict[str, Any]:
    """Return what all parts with files have on the page: name, sentence, and the line that hides the part."""
    return {"name": part.name, "says": marked(part.says), "folded": marked(part.folded)}


def marked(text: str) -> Markup:
    """Escape a text for pages; what stands in backticks becomes code."""
    pieces = (
        Markup("<code>{}</code>").format(its) if k % 2 else escape(its)
        for k, its in enumerate(text.split("`"))
    )
    return Markup("").join(pieces)

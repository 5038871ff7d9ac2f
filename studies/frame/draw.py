"""Draws the parts of a page: each kind's function writes its files and returns its content for the template."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup, escape

from menagerie.envs.core.files import write_text
from menagerie.studies.analysis.errors import TestedCell, breakdown_rows, error_table, surest_records
from menagerie.studies.analysis.pictures import write_figure
from menagerie.studies.analysis.tables import meaning_of_flags, styled_table, to_csv
from menagerie.studies.frame import parts
from menagerie.studies.frame.charts import RunCurve, training_curves, write_chart
from menagerie.studies.frame.figures import draw_figure
from menagerie.studies.frame.layout import Key, PartNumbers, Sheet, label_values

LISTED = ".parts"
"""The file in a study's folder that lists the files of its page's parts, one per line."""
OF_PART = re.compile(r"[\w.-]+\.(csv|tex)|figures/[\w.-]+\.(png|svg|csv)")


def drop_former(shown: Iterable[parts.Part], out: Path) -> None:
    """Delete files of the folder's earlier page that would seem to be of this one: those of parts not `shown`."""
    names = {name for part in shown if isinstance(part, parts.FilePart) for name in part.files}
    listed = out / LISTED
    former = set(listed.read_text(errors="replace").splitlines()) if listed.exists() else set()
    for name in filter(OF_PART.fullmatch, former - names):
        (out / name).unlink(missing_ok=True)
    write_text(listed, "".join(f"{name}\n" for name in sorted(names)))


@singledispatch
def write_page_part(part: parts.Part, out: Path) -> dict[str, Any]:
    """Write the files of a part into a study's folder; returns its kind and content for the template."""
    raise TypeError(f"nothing draws a {type(part).__name__}")


@write_page_part.register
def _(part: parts.Sentence | parts.Paragraph | parts.Heading, out: Path) -> dict[str, Any]:
    return vars(part) | {"kind": type(part).__name__.lower(), "text": mark_up(part.text)}


@write_page_part.register
def _(part: parts.Facts, out: Path) -> dict[str, Any]:
    return {"kind": "facts", "facts": {name: mark_up(text) for name, text in part.facts.items()}}


@write_page_part.register
def _(part: parts.Rows, out: Path) -> dict[str, Any]:
    frame = pd.DataFrame([list(row) for row in part.rows], columns=list(part.header))
    to_csv(out / f"{part.name}.csv", frame)
    return table_content(part, frame)


@write_page_part.register
def _(part: parts.EstimateTable, out: Path) -> dict[str, Any]:
    to_csv(out / f"{part.name}.csv", estimates_frame(part))
    rows = [[*map(str, key), str(its)] for key, its in part.found.items()]
    return table_content(part, pd.DataFrame(rows, columns=[*part.names, "estimate"]))


@write_page_part.register
def _(part: parts.Table, out: Path) -> dict[str, Any]:
    sheet = Sheet(part)
    to_csv(out / f"{part.name}.csv", estimates_frame(sheet.numbers))
    accuracies = not (part.against or part.intervals or part.beside)
    noted = replace(part, says=" ".join(filter(None, (part.says, sheet.notes, sheet.numbers.decides))))
    content = table_content(noted, sheet.frame, len(sheet.labels) if accuracies else None, sheet.chances)
    return content | {"flags": meaning_of_flags(sheet.frame), "numbers": sheet.sizes, "caption": plain(part.says)}


def table_content(part: parts.FilePart, frame: pd.DataFrame, *shaded: Any) -> dict[str, Any]:
    """Return a table's content for the page; `shaded` are further arguments of `styled_table`."""
    content = {"html": styled_table(frame, *shaded), "frame": frame, "caption": plain(part.says)}
    return named_content(part, "table") | content | {"flags": "", "numbers": ""}


@write_page_part.register
def _(part: parts.FigurePart, out: Path) -> dict[str, Any]:
    if not len(part.records.scores):
        return nothing_yet(part)
    drawn = draw_figure(part)
    said = replace(part, says=" ".join(filter(None, (part.says, drawn.note, drawn.numbers.decides))))
    return chart_content(said, out, drawn.chart, estimates_frame(drawn.numbers))


@write_page_part.register
def _(part: parts.Chart, out: Path) -> dict[str, Any]:
    return chart_content(part, out, part.chart, part.chart.data)


@write_page_part.register
def _(part: parts.Curves, out: Path) -> dict[str, Any]:
    curves = [
        RunCurve(
            str(arm.place[part.panels]),
            part.title(names := [name for name in part.labels if name in arm.place], label_values(arm.place, names)),
            part.records.folder(arm),
        )
        for arm, _ in part.records.results
    ]
    chart = training_curves(curves, 100 * part.chance)
    return nothing_yet(part) if chart is None else chart_content(part, out, chart)


@write_page_part.register
def _(part: parts.OwnFigure, out: Path) -> dict[str, Any]:
    if (figure := part.figure()) is None:
        return nothing_yet(part)
    file = out / "figures" / f"{part.name}.png"
    if numbers := part.numbers():
        to_csv(file.with_suffix(".csv"), pd.DataFrame(numbers))
    return named_content(part, "figure") | {"uri": write_figure(file, figure), "alt": plain(part.says) or part.name}


@write_page_part.register
def _(part: parts.Cases, out: Path) -> dict[str, Any]:
    """Write errors.csv, with a row for each place, test, task, factor and value; return a section for each model.

    The records with the widest margins are those of a model's first place and seed: in a grid, the hardest place.
    """
    places: dict[Key, list[TestedCell]] = {}
    for arm, _ in part.records.results:
        if arm.file:
            source = TestedCell(arm.cell.seed, part.records.folder(arm), arm.file)
            places.setdefault(label_values(arm.place, part.rows), []).append(source)
    found = [breakdown_rows(tuple(its)).assign(**dict(zip(part.rows, key, strict=True))) for key, its in places.items()]
    if found:
        whole = pd.concat(found, ignore_index=True)
        to_csv(out / "errors.csv", whole[[*part.rows, *(name for name in whole if name not in part.rows)]])
    at = list(part.rows).index("model")
    models = dict.fromkeys(key[at] for key in places)
    of_models = ({key: its for key, its in places.items() if key[at] == model} for model in models)
    return named_content(part, "cases") | {"sections": [error_section(part, its, at) for its in of_models]}


def error_section(part: parts.Cases, places: Mapping[Key, Sequence[TestedCell]], at: int) -> dict[str, Any]:
    tests = {test: part.word("subset", test) for test in part.records.tests}
    (key, (first, *_)), names = next(iter(places.items())), list(part.rows)
    facts = [f"{n.replace('_', ' ')} {part.word(n, v)}" for n, v in zip(names, key, strict=True) if n != "model"]
    rows = error_table(breakdown_rows(tuple(source for its in places.values() for source in its)), list(tests))
    surest = surest_records(first, tuple(tests))
    return {
        "model": part.word("model", key[at]),
        "html": styled_table(rows.rename(columns=tests), 2),
        "place": ", ".join([*facts, f"seed {first.seed}"]),
        **{side: [example(row, tests) for row in found.itertuples()] for side, found in surest.items()},
    }


def example(row: Any, tests: Mapping[str, str]) -> dict[str, str]:
    texts = {"true": f"✓ {row.caption}", "false": f"✗ {row.negative}"}
    return {"uri": row.uri, **texts, "note": f"{tests[row.subset]}, margin {row.margin:+.4g}"}


def nothing_yet(part: parts.FilePart) -> dict[str, Any]:
    return {"kind": "paragraph", "text": mark_up(f"{part.says} Nothing is there to draw yet.")}


def estimates_frame(numbers: PartNumbers | parts.EstimateTable) -> pd.DataFrame:
    """Return a row for each estimate: its labels, and its numbers as shares, as in results.csv."""
    rows = [dict(zip(numbers.names, key, strict=True)) | its._asdict() for key, its in numbers.found.items()]
    return pd.DataFrame(rows)


def chart_content(part: parts.FilePart, out: Path, chart: Any, numbers: Any = None) -> dict[str, Any]:
    """Write a chart as PNG and SVG, and its numbers as CSV; returns its content for the page."""
    file = out / "figures" / f"{part.name}.png"
    specification = write_chart(file, chart)
    if isinstance(numbers, pd.DataFrame):
        to_csv(file.with_suffix(".csv"), numbers)
    return named_content(part, "chart") | {"specification": specification}


def named_content(part: parts.FilePart, kind: str) -> dict[str, Any]:
    return {"kind": kind, "name": part.name, "says": mark_up(part.says), "folded": mark_up(part.folded)}


def mark_up(text: str) -> Markup:
    """Escape a text for pages; text in backticks becomes `<code>`."""
    pieces = (Markup("<code>{}</code>").format(its) if k % 2 else escape(its) for k, its in enumerate(text.split("`")))
    return Markup("").join(pieces)


def plain(text: str) -> str:
    return text.replace("`", "")

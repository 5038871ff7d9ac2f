"""What all charts share: their look, panels, and the files that they are saved to; and charts of training curves."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
import vl_convert
from markupsafe import Markup

from menagerie.envs.core.files import whole_file, write_text
from menagerie.models.registry import short_name
from menagerie.studies.runs.training_log import read_training

# Colours that colour-blind readers can tell apart (Okabe and Ito, 2008); with as many shapes more than 50 lines differ.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4c9a"]
SHAPES = ["circle", "square", "diamond", "triangle-down", "triangle-up", "cross", "triangle-right", "triangle-left"]
DOTTED, DASHED = [1, 3], [5, 3]  # chance is dotted in every figure, and nothing else is
GREY = "#555"
WIDTH, HEIGHT = 220, 170  # pixels of a panel
BESIDE = 3  # panels in a row
SCALE = 2  # pixels of a PNG for each of the page
CONFIG: dict[str, Any] = {
    "background": "white",
    "padding": 6,
    "axis": {"labelLimit": 300, "gridOpacity": 0.5, "titleFontWeight": "normal"},
    "header": {"labelLimit": 300, "labelFontWeight": "bold", "title": None},
    "legend": {
        "orient": "top",
        "columns": 3,
        "labelLimit": 320,
        "symbolLimit": 60,
        "symbolOpacity": 1,
        "titleLimit": 400,
        "title": None,
    },
    "range": {"category": COLOURS, "symbol": SHAPES},
    "view": {"stroke": "#ddd"},
}


def panels(
    layers: Sequence[alt.Chart], frame: Any, names: Sequence[str], height: int = HEIGHT, width: int = WIDTH
) -> alt.TopLevelMixin:
    """Draw layers in a panel for each of `names`, the values of the column `panel` of their frame, in this order."""
    chart = alt.layer(*layers, data=frame).properties(width=width, height=height)
    if len(names) == 1:
        return chart.properties(title=names[0].split("\n"))
    labels = alt.Header(labelExpr="split(datum.label, '\\n')")
    columns = -(-len(names) // -(-len(names) // BESIDE))  # four are two by two, not three and one
    return chart.facet(alt.Facet("panel:N", sort=list(names), header=labels), columns=columns)


def chance_rule(**encoding: Any) -> alt.Chart:
    return alt.Chart().mark_rule(strokeDash=DOTTED, color=GREY, size=1.5).encode(**encoding)


def write_chart(path: Path, chart: alt.TopLevelMixin) -> Markup:
    """Write a chart to `path`, a PNG, and as an SVG beside it; returns its specification as JSON for a page."""
    with alt.data_transformers.disable_max_rows():  # Altair refuses more than 5000
        specification = chart.to_dict()
    specification["config"] = CONFIG
    with whole_file(path) as temporary:
        temporary.write_bytes(vl_convert.vegalite_to_png(specification, scale=SCALE))
    write_text(path.with_suffix(".svg"), vl_convert.vegalite_to_svg(specification))
    return Markup(json.dumps(specification).replace("<", "\\u003c"))


@cache
def page_script() -> Markup:
    """Return the script that draws all charts of a page, without anything loaded from elsewhere."""
    return Markup(vl_convert.javascript_bundle().replace("</script", "<\\/script"))


MOST_LINES = 12  # of training curves in a panel; with more, seeds are averaged
POINTS = 100  # of a curve of all steps, at least; each is the mean of neighbouring steps
PERCENT = "validation (%)"
CURVES = {"loss": "loss", "validation": PERCENT, "learning_rate": "learning rate", "images_per_second": "images/s"}


class RunCurve(NamedTuple):
    """One cell: its label in the figure, which its other seeds share, and its folder."""

    model: str
    label: str
    folder: Path


def training_curves(curves: Sequence[RunCurve], chance: float = 50.0) -> alt.TopLevelMixin | None:
    """Draw the curves of all cells with a training log, by model; None without any. `chance` of validation is in
    percent."""
    parts = [
        curve_rows(table).assign(model=short_name(curve.model), label=curve.label, run=str(k))
        for k, curve in enumerate(curves)
        if (table := read_training(curve.folder))
    ]
    if not parts:
        return None
    frame = pd.concat(parts, ignore_index=True)
    if frame.groupby("model")["run"].nunique().max() > MOST_LINES:
        frame = frame.groupby(["panel", "model", "label", "step"], sort=False)["value"].mean().reset_index()
        frame["run"] = frame["label"]
    frame["chance"] = np.where(frame["panel"] == PERCENT, chance, np.nan)
    look = {"x": alt.X("step:Q"), "y": alt.Y("value:Q", title=None, scale=alt.Scale(zero=False)), "detail": "run:N"}
    colour = alt.Color("label:N", sort=[*frame["label"].unique()])
    lines = alt.Chart().mark_line(size=1.2).encode(**look, color=colour, tooltip=["label:N", "step:Q", "value:Q"])
    dots = lines.mark_point(filled=True, size=16).transform_filter(alt.datum.panel == PERCENT)
    sides = {
        "row": alt.Row("panel:N", sort=[*CURVES.values()], header=alt.Header(labelAngle=-90)),
        "column": alt.Column("model:N", sort=[*frame["model"].unique()]),
    }
    chart = alt.layer(lines, dots, chance_rule(y=alt.Y("min(chance):Q", title=None)), data=frame)
    return chart.properties(width=220, height=120).facet(**sides).resolve_scale(y="independent")


def curve_rows(table: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Return a row for each point of a run's curves: panel, step, value."""
    frame = pd.DataFrame(table)
    means = frame.groupby(np.arange(len(frame)) // max(1, len(frame) // POINTS)).mean()
    shown = {column: means for column in CURVES}
    shown["validation"] = frame.dropna(subset="validation").assign(validation=lambda rows: 100 * rows["validation"])
    found = [rows[["step", name]].set_axis(["step", "value"], axis=1) for name, rows in shown.items()]
    return pd.concat(found, keys=CURVES.values(), names=["panel"]).reset_index("panel")

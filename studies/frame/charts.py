"""What all charts share: their look, panels, and the files that they are saved to."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup

from menagerie.envs.core.files import whole_file

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


def write_chart(path: Path, chart: alt.TopLevelMixin) -> Markup:
    """Write a chart to `path`, a PNG, and as an SVG beside it; returns its specification as JSON for a page."""
    specification = chart.to_dict()
    specification["config"] = CONFIG
    with whole_file(path) as temporary:
        temporary.write_bytes(vl_convert.vegalite_to_png(specification, scale=SCALE))
    with whole_file(path.with_suffix(".svg")) as temporary:
        temporary.write_text(vl_convert.vegalite_to_svg(specification), "utf-8")
    return Markup(json.dumps(specification).replace("<", "\\u003c"))


@cache
def page_script() -> Markup:
    """Return the script that draws all charts of a page, without anything loaded from elsewhere."""
    return Markup(vl_convert.javascript_bundle().replace("</script", "<\\/script"))

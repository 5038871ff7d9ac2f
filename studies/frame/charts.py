"""Charts by altair: their look, and the files that they are saved to."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert
from markupsafe import Markup

from menagerie.envs.core.files import whole_file
from menagerie.studies.analysis.tables import to_csv

SCALE = 2  # pixels of a PNG for each of the page
CONFIG: dict[str, Any] = {"background": "white", "axis": {"labelLimit": 260}, "legend": {"orient": "top"}}


def write_chart(path: Path, chart: alt.TopLevelMixin) -> Markup:
    """Write a chart to `path`, a PNG, as an SVG beside it, and its frame as a CSV; returns its specification as JSON
    for a page."""
    specification = chart.to_dict()
    specification["config"] = CONFIG
    with whole_file(path) as temporary:
        temporary.write_bytes(vl_convert.vegalite_to_png(specification, scale=SCALE))
    with whole_file(path.with_suffix(".svg")) as temporary:
        temporary.write_text(vl_convert.vegalite_to_svg(specification), "utf-8")
    if isinstance(chart.data, pd.DataFrame):
        to_csv(path.with_suffix(".csv"), chart.data)
    return Markup(json.dumps(specification).replace("<", "\\u003c"))


@cache
def page_script() -> Markup:
    """Return the script that draws all charts of a page, without anything loaded from elsewhere."""
    return Markup(vl_convert.javascript_bundle().replace("</", "<\\/"))

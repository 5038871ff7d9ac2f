"""Figures as files, and what they must look like."""

import altair as alt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from menagerie.studies.analysis.pictures import DOTS_PER_INCH, svg, write_figure
from menagerie.studies.analysis.tables import accuracy_style, colour_at, ink, styled_table
from menagerie.studies.frame.charts import write_chart


def drawn():
    figure = Figure((3, 2))
    axis = figure.subplots()
    axis.imshow(np.arange(6).reshape(2, 3), clip_on=True)
    axis.scatter([0, 1], [1, 0], marker="o")
    axis.set_title("a < b")
    return figure


def test_figure_has_the_same_bytes_each_time(tmp_path):
    assert svg(drawn()) == svg(drawn())
    assert b"<dc:date>" not in svg(drawn())
    uri = write_figure(tmp_path / "figures" / "a.png", drawn())
    assert uri.startswith("data:image/png;base64,")
    assert (tmp_path / "figures/a.svg").read_bytes().startswith(b"<?xml")
    with Image.open(tmp_path / "figures/a.png") as image:
        assert image.size == (3 * DOTS_PER_INCH, 2 * DOTS_PER_INCH)
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["a.png", "a.svg"]


def luminance(colour):
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot([0.2126, 0.7152, 0.0722], channels))


def test_a_chart_may_have_more_rows_than_altair_allows(tmp_path):
    chart = alt.Chart(pd.DataFrame({"x": range(5001)})).mark_tick().encode(x="x:Q")
    assert '"x": 5000' in write_chart(tmp_path / "a.png", chart)
    assert Image.open(tmp_path / "a.png").size[0] > 100


def test_numbers_contrast_with_every_colour():
    for accuracy in range(101):
        light, dark = sorted((luminance(colour_at(accuracy)), luminance(ink(colour_at(accuracy)))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, accuracy


def test_accuracies_below_chance_look_different_from_chance():
    steps = [luminance(colour_at(accuracy)) for accuracy in (0, 25, 50, 75, 100)]
    assert steps == sorted(steps)
    assert np.diff(steps).min() > 0.02
    assert np.linalg.norm(np.subtract(to_rgb(colour_at(25)), to_rgb(colour_at(50)))) > 0.2


@pytest.mark.parametrize(
    ("text", "accuracy"), [("71.2", 71.2), ("0.0 [0.0, 12.5] n 8", 0), ("100.0", 100), ("–", None), ("clip 50", None)]
)
def test_table_cells_have_the_colours_of_figures(text, accuracy):
    colour = "" if accuracy is None else colour_at(accuracy)
    assert accuracy_style(text) == (f"background: {colour}; color: {ink(colour)}" if colour else "")


@pytest.mark.parametrize("chance", [25.0, 100 / 6, 50.0])
def test_chance_has_the_same_colour_in_every_task(chance):
    assert (accuracy_style(f"{chance:.10f}", chance)) == (accuracy_style("50.0"))
    assert (accuracy_style("100.0", chance)) == (accuracy_style("100.0"))
    assert (accuracy_style("0.0", chance)) == (accuracy_style("0.0"))
    assert (accuracy_style("100.0", 100.0)) == (accuracy_style("50.0"))


def test_a_table_escapes_its_texts_and_colours_only_accuracies():
    frame = pd.DataFrame([["a & <b>", "71.2"], ["c", "–"]], columns=["model", "model"])  # two columns of one name
    html = str(styled_table(frame, 1))
    assert "a &amp; &lt;b&gt;" in html
    assert html.count("background:") == 1

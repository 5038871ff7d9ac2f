"""Training curves of a study's cells: loss, validation, learning rate and speed, with a column of panels per model."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from menagerie.studies.frame.charts import DOTTED, GREY
from menagerie.studies.report.figures import model_label
from menagerie.studies.runs.training_log import read_training

MOST_LINES = 12  # of a panel; with more, seeds are averaged
POINTS = 100  # of a curve of all steps, at least; each is the mean of neighbouring steps
PERCENT = "validation (%)"
PANELS = {"loss": "loss", "validation": PERCENT, "learning_rate": "learning rate", "images_per_second": "images/s"}


class RunCurve(NamedTuple):
    """One cell: its label in the figure, and its folder. Cells with the same label differ only by seed and look the
    same."""

    model: str
    label: str
    folder: Path


def training_curves(curves: Sequence[RunCurve], chance: float = 50.0) -> alt.TopLevelMixin | None:
    """Draw the curves of all cells that have a training log; None if no cell has one. `chance`, in percent, is that of
    validation."""
    parts = [
        curve_rows(table).assign(model=model_label(curve.model), label=curve.label, run=str(k))
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
    rule = alt.Chart().mark_rule(strokeDash=DOTTED, color=GREY).encode(y=alt.Y("min(chance):Q", title=None))
    sides = {
        "row": alt.Row("panel:N", sort=[*PANELS.values()], header=alt.Header(labelAngle=-90)),
        "column": alt.Column("model:N", sort=[*frame["model"].unique()]),
    }
    chart = alt.layer(lines, dots, rule, data=frame).properties(width=220, height=120)
    return chart.facet(**sides).resolve_scale(y="independent")


def curve_rows(table: dict[str, np.ndarray]) -> pd.DataFrame:
    """Return a row for each point of a run's curves: panel, step, value."""
    found = []
    for column, name in PANELS.items():
        steps, values = table["step"], table[column]
        if name == PERCENT:
            seen = ~np.isnan(values)
            steps, values = steps[seen], 100 * values[seen]
        else:
            size = max(1, len(values) // POINTS)
            places = np.arange(0, len(values), size)
            steps, values = (np.add.reduceat(its, places) / np.diff([*places, len(its)]) for its in (steps, values))
        found.append(pd.DataFrame({"panel": name, "step": steps, "value": values}))
    return pd.concat(found, ignore_index=True)


def equal_losses_note(curves: Sequence[RunCurve]) -> str:
    """Write a sentence on whether any two runs have the same losses; empty for fewer than two runs."""
    losses = [tuple(table["loss"]) for curve in curves if (table := read_training(curve.folder))]
    if len(losses) < 2:
        return ""
    if len(set(losses)) == len(losses):
        return "No two of these runs have the same losses."
    return "Some of these runs have the same losses: what they differ in changes none of their steps."

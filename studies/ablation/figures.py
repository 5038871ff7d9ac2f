"""The figure of the ablation study: a dot for each seed of each row."""

import statistics

import matplotlib

from menagerie.envs.core.figures import COLOURS, chance_line
from menagerie.studies.ablation.rows import Place
from menagerie.studies.ablation.runs import Columns, Runs, accuracies
from menagerie.studies.ablation.tables import column_name

matplotlib.use("Agg")
from matplotlib.figure import Figure


def accuracy_figure(done: Runs, split: str, columns: Columns, base: str) -> Figure:
    """A panel for each column: a dot for each seed of each row, the mean of several as a bar, the model as it is as a
    dashed line, and chance where it is in sight."""
    rows = [place for place in done if place.split == split]
    figure = Figure((1.7 * len(columns) + 2.0, 0.28 * len(rows) + 1.0), layout="constrained")
    axes = figure.subplots(1, len(columns), sharex=True, sharey=True, squeeze=False)[0]
    for axis, (subset, task) in zip(axes, columns, strict=True):
        for y, place in enumerate(rows):
            values = accuracies(done[place], subset, task)
            axis.plot(values, [y] * len(values), "o", color=COLOURS[0], alpha=0.6, markersize=4)
            if len(values) > 1:
                axis.plot([statistics.mean(values)], [y], "|", color="black", markersize=12)
        if unchanged := accuracies(done[Place(split, base)], subset, task):
            axis.axvline(statistics.mean(unchanged), color="0.6", linewidth=1, linestyle="--")
        axis.set_title(column_name(subset, task).replace(": ", "\n"), fontsize=9)
        axis.set_xlabel("accuracy (%)", fontsize=8)
        axis.set_yticks(range(len(rows)), [place.row for place in rows], fontsize=8, parse_math=False)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.margins(x=0.1)
    for axis in axes:  # which share their limits
        chance_line(axis, "x", stretch=False)
    return figure

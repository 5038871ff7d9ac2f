"""Figure 3 of SPARO: accuracy and parameters by the number of slots and by their width."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib

from menagerie.envs.core.figure_style import chance_line, legend_above, line_style
from menagerie.models.registry import spec_of
from menagerie.studies.ablation.rows import Place
from menagerie.studies.ablation.tables import Columns, Runs, accuracies, column_name
from menagerie.studies.slots.runs import MODEL, SWEPT

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

WIDEST = 9.8  # inches, as wide as a page
Parameters = Mapping[str, int]  # of each row


def sweep_figure(
    done: Runs,
    split: str,
    columns: Columns,
    swept: Mapping[str, Sequence[int]],
    beside: Sequence[str],
    parameters: Parameters,
) -> Figure:
    """A line of panels for each swept field: accuracy in each column, then parameters. Dots are seeds, the line is
    their mean; models `beside` are level lines."""
    fields = [field for field, values in swept.items() if values]
    figure = Figure((min(2.3 * (len(columns) + 1) + 0.4, WIDEST), 2.4 * len(fields)), layout="constrained")
    axes = figure.subplots(len(fields), len(columns) + 1, squeeze=False)
    for line, field in zip(axes, fields, strict=True):
        values = sorted(swept[field])
        for axis, column in zip(line, columns, strict=False):
            draw_accuracies(axis, done, split, column, field, values)
            for number, name in enumerate(beside, start=1):
                if its := accuracies(done.get(Place(split, name), ()), *column):
                    axis.axhline(statistics.mean(its), **level(number))
            chance_line(axis, stretch=False)
            axis.set_title(column_name(*column).replace(": ", "\n"), fontsize=9)
        draw_parameters(line[-1], parameters, field, values)
        line[0].set_ylabel("accuracy (%)", fontsize=8)
        for axis in line:
            axis.set_xlabel(SWEPT[field], fontsize=8)
            axis.tick_params(labelsize=8)
            axis.set_xscale("log", base=2)
            axis.set_xticks(values, list(map(str, values)))
            axis.minorticks_off()
    names = [Line2D([], [], **level(number), label=name) for number, name in enumerate(beside, start=1)]
    legend_above(figure, [Line2D([], [], color=line_style(0)["color"], label=spec_of(MODEL).title), *names])
    return figure


def draw_accuracies(
    axis: Axes, done: Runs, split: str, column: tuple[str, str], field: str, values: Sequence[int]
) -> None:
    """The seeds and the means of one sweep."""
    means = []
    for value in values:
        its = accuracies(done.get(Place(split, f"{field}={value}"), ()), *column)
        axis.plot([value] * len(its), its, "o", color=line_style(0)["color"], alpha=0.4, markersize=3)
        if its:
            means.append((value, statistics.mean(its)))
    axis.plot(*zip(*means, strict=True) if means else ([], []), color=line_style(0)["color"])


def level(number: int) -> dict[str, Any]:
    """The line of a model that has no such field."""
    return {"color": line_style(number)["color"], "linewidth": 1, "linestyle": "--"}


def draw_parameters(axis: Axes, parameters: Parameters, field: str, values: Sequence[int]) -> None:
    """Parameters in thousands."""
    known = [(value, parameters[f"{field}={value}"] / 1000) for value in values if f"{field}={value}" in parameters]
    axis.plot(*zip(*known, strict=True) if known else ([], []), "o-", color="0.3", markersize=3)
    axis.set_title("parameters (thousands)", fontsize=9)
    axis.set_ylim(0, 1.15 * max((count for _, count in known), default=1))

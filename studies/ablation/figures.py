"""The figures of an ablation study: a dot for each seed of each row, and heat maps of two fields varied together."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import matplotlib

from menagerie.envs.core.figures import COLOURS, bar_above, chance_line
from menagerie.models.registry import spec_of
from menagerie.models.spec import ScorerSpec
from menagerie.studies.ablation.papers import ablations_of
from menagerie.studies.ablation.rows import SplitRow
from menagerie.studies.ablation.tables import Columns, Runs, accuracies, column_name
from menagerie.studies.grids.figures import WIDEST, draw_panel
from menagerie.studies.runs.cell import Cell, Job
from menagerie.studies.runs.results import mean_of

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
        if unchanged := accuracies(done[SplitRow(split, base)], subset, task):
            axis.axvline(statistics.mean(unchanged), color="0.6", linewidth=1, linestyle="--")
        axis.set_title(column_name(subset, task).replace(": ", "\n"), fontsize=9)
        axis.set_xlabel("accuracy (%)", fontsize=8)
        axis.set_yticks(range(len(rows)), [place.row for place in rows], fontsize=8, parse_math=False)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.margins(x=0.1)
    for axis in axes:  # which share their limits
        chance_line(axis, "x", stretch=False)
    return figure


NAMES = 0.6  # inches for what stands beside the panels


class Plane(NamedTuple):
    """The rows of one split in which no more than two fields of the model differ from it as it is."""

    up: str
    across: str
    rows: Mapping[tuple[Any, Any], SplitRow]
    """The rows by their values of both fields."""

    @property
    def sides(self) -> tuple[list[Any], list[Any]]:
        """The values of each field."""
        one, other = zip(*self.rows, strict=True)
        return sorted(set(one)), sorted(set(other))

    @property
    def whole(self) -> bool:
        """Whether every value of one was varied with every value of the other."""
        one, other = map(len, self.sides)
        return min(one, other) > 1 and len(self.rows) == one * other


def planes(spec: ScorerSpec, jobs: Mapping[SplitRow, Sequence[Job]], split: str, base: str) -> Iterator[Plane]:
    """The planes of a model whose rows this study has, all of them."""
    cells = {place: batch[0].cell for place, batch in jobs.items() if place.split == split}
    plain = cells[SplitRow(split, base)]
    for fields in ablations_of(spec).planes:
        rows = {
            tuple(options_of(cell)[name] for name in fields): place
            for place, cell in cells.items()
            if rest_of(cell, fields) == rest_of(plain, fields)
        }
        if (plane := Plane(*fields, rows)).whole:
            yield plane


def options_of(cell: Cell) -> dict[str, Any]:
    """All options of a cell's model."""
    return asdict(spec_of(cell.model).config()) | cell.options


def rest_of(cell: Cell, fields: Sequence[str]) -> dict[str, Any]:
    """The settings of a cell but for some options of its model."""
    return cell.settings | {"options": {name: value for name, value in options_of(cell).items() if name not in fields}}


def plane_figure(done: Runs, plane: Plane, columns: Columns, says: Mapping[str, str]) -> Figure:
    """A panel for each column: accuracy (%), mean and deviation over seeds."""
    up, across = plane.sides
    width, height = 1.0 + 0.85 * len(across), 0.6 + 0.62 * len(up)
    each = max(1, min(len(columns), int((WIDEST - NAMES) / width)))  # in a line
    lines = -(-len(columns) // each)
    figure = Figure((width * each + NAMES, height * lines + 1.2), layout="constrained")
    axes = figure.subplots(lines, each, squeeze=False)
    for axis in axes.flat[len(columns) :]:
        axis.axis("off")
    for axis, (subset, task) in zip(axes.flat, columns, strict=False):
        cells = [[accuracies(done[plane.rows[y, x]], subset, task) for x in across] for y in up]
        image = draw_panel(axis, [[mean_of([value / 100 for value in values]) for values in row] for row in cells])
        axis.set_title(subset.replace("_", " ") + ("" if task == "swap" else f"\n{task}"), fontsize=9)
        axis.set_xticks(range(len(across)), across)
        axis.set_yticks(range(len(up)), up)
    figure.supylabel(axis_label(plane.up, says), fontsize=9)
    figure.supxlabel(axis_label(plane.across, says), fontsize=9)
    bar = bar_above(figure, image, axes, "accuracy (%), dotted line: chance", width=1.6)
    chance_line(bar.ax, "x", color="white", linewidth=2)
    return figure


def axis_label(name: str, says: Mapping[str, str]) -> str:
    """An option, and what it is where its model says so."""
    return f"{name}: {says[name]}" if name in says else name

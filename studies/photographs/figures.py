"""Figures of the questions: estimates side by side, estimates by the amount of photographs, and images of a test."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from menagerie.studies.frame.bars import draw_dot
from menagerie.studies.frame.cases import sample_sheet
from menagerie.studies.frame.estimate import Estimate, compare_groups
from menagerie.studies.frame.figures import draw_line, panel_axes, style_axes
from menagerie.studies.frame.parts import OwnFigure
from menagerie.studies.photographs.answers import NO_POINTS, GroupComparison, Ladder
from menagerie.studies.photographs.data import TestedSplit, sample_swaps
from menagerie.studies.photographs.trainings import (
    FACTORS_PART,
    FINE_TUNING,
    HELD_OUT,
    OTHERS,
    OWN,
    PHOTOGRAPHS,
    WORTH,
    ZERO_SHOT,
)
from menagerie.studies.report.figures import COLOURS, chance_line, legend_above, line_style, model_label

SCRATCH, TUNED = "from scratch", "after synthetic training"
STROKES = {TUNED: "-", SCRATCH: "--"}
ANIMALS = ("rendered animals", "photographed animals")
SAYS = {
    ZERO_SHOT: "Accuracy of models trained on rendered animals only: on rendered ones, and on photographs in the same "
    "places, orders and relations, and, except in their own colours, in the same textures. Lines: intervals. Dotted: "
    "chance. Photographs in their own colours have captions without textures, as have the rendered animals that they "
    "are compared with.",
    FINE_TUNING: "Accuracy on photographs that no training shows, by the number of photographs that are trained on: of "
    "the tested animals, at most this many each, or of other animals. At 0: the synthetic run itself. From scratch, "
    "all steps are on photographs; others don't teach the tested animals' names, so no such run exists. "
    "Each photograph is shown in many composed images.",
    WORTH: "Accuracy by the number of distinct images of photographs. Each point is a model of its own, trained on so "
    "many distinct images, which are composed of as many photographs of each animal as fine-tuning uses at most. Thin "
    "lines: the targets. Dotted: chance.",
    FACTORS_PART: "Accuracy of the model trained in the changed synthetic world minus that of the model trained in the "
    "unchanged one, on the same records of photographed and of rendered animals.",
}


@dataclass(frozen=True)
class EstimateFigure(OwnFigure):
    """A figure of estimates by the labels in `sides`, with a panel for each value of the first label."""

    found: Mapping[tuple[Any, ...], Estimate] = field(kw_only=True)

    def numbers(self) -> Sequence[Mapping[str, Any]]:
        """Return all estimates, as shares."""
        return [dict(zip(self.sides, key, strict=True)) | its._asdict() for key, its in self.found.items()]

    def values(self, side: str) -> list[Any]:
        """Return the values of one label, in order."""
        return list(dict.fromkeys(key[self.sides.index(side)] for key in self.found))

    def panels(self, size: tuple[float, float], **shared: Any) -> tuple[Figure, Iterator[tuple[Axes, Any]]]:
        """Return a figure, and its panels, each with its estimates."""
        names = self.values("panel")
        figure, axes = panel_axes(len(names), size, sharey=True, **shared)
        for axis, name in zip(axes, names, strict=True):
            axis.set_title(name, fontsize=9, parse_math=False)
            style_axes(axis)
        here = ([(key[1:], its) for key, its in self.found.items() if key[0] == name] for name in names)
        return figure, zip(axes, here, strict=True)


@dataclass(frozen=True)
class EstimateDots(EstimateFigure):
    """Estimates with intervals: a panel for each measure, a colour for rendered and for photographed animals."""

    sides = ("panel", "row", "animals")
    differences: bool = field(default=False, kw_only=True)

    def figure(self) -> Figure:
        rows = self.values("row")
        figure, panels = self.panels((2.4, 0.5 * len(rows) + 0.6), beside=2.6, sharex=True)
        for axis, here in panels:
            for (row, kind), its in here:
                number = ANIMALS.index(kind)
                draw_dot(axis, its, rows.index(row) + 0.2 * number - 0.1, COLOURS[number], ())
            axis.set_yticks(range(len(rows)), rows, parse_math=False)
            axis.set_ylim(len(rows) - 0.5, -0.5)
            chance_line(axis, "x") if not self.differences else axis.axvline(0, color="0.4", linewidth=1)
        figure.supxlabel("percentage points" if self.differences else "accuracy (%)", fontsize=9)
        style = {"linestyle": "none", "marker": "o"}
        legend_above(figure, [Line2D([], [], label=kind, color=COLOURS[k], **style) for k, kind in enumerate(ANIMALS)])
        return figure


@dataclass(frozen=True)
class AmountLines(EstimateFigure):
    """Accuracy by the amount of photographs, from scratch and after synthetic training."""

    sides = ("panel", "model", "start", "amount")
    levels: Sequence[float] = field(default=(), kw_only=True)
    """Shares that thin lines mark."""

    def figure(self) -> Figure:
        models = self.values("model")
        figure, panels = self.panels((4.3, 2.5))
        for axis, here in panels:
            amounts = sorted({amount for (*_, amount), _ in here})
            for model, start in dict.fromkeys(key[:2] for key, _ in here):
                points = [(float(amounts.index(key[2])), its) for key, its in here if key[:2] == (model, start)]
                draw_line(axis, points, line_style(models.index(model)) | {"linestyle": STROKES[start]})
            axis.set_xticks(range(len(amounts)), list(map(str, amounts)))
            for level in self.levels:
                axis.axhline(100 * level, color="0.7", linewidth=0.8, linestyle=(0, (6, 3)), zorder=0.5)
            chance_line(axis)
        figure.supylabel("accuracy (%)", fontsize=9)
        keys = [Line2D([], [], label=model_label(model), **line_style(k)) for k, model in enumerate(models)]
        strokes = [Line2D([], [], color="0.3", linestyle=stroke, label=name) for name, stroke in STROKES.items()]
        legend_above(figure, [*keys, *strokes])
        return figure


@dataclass(frozen=True)
class TestSamples(OwnFigure):
    """Some images of a test with their captions."""

    test: TestedSplit

    def figure(self) -> Figure | None:
        images, captions = sample_swaps(self.test)
        return sample_sheet(images, captions) if images else None


def question_figure(part: str, rows: Sequence[Any], study: Any) -> EstimateFigure:
    """Return the figure of a question."""
    if part in (ZERO_SHOT, FACTORS_PART):
        return EstimateDots(
            part,
            found=dict(gap_points(rows) if part == ZERO_SHOT else factor_points(rows)),
            differences=part != ZERO_SHOT,
            says=SAYS[part],
        )
    found, levels = (dict(image_points(rows)), study.targets) if part == WORTH else (dict(photograph_points(rows)), ())
    return AmountLines(part, found=found, levels=levels, says=SAYS[part])


Found = Iterator[tuple[tuple[Any, ...], Estimate]]


def gap_points(rows: Sequence[GroupComparison]) -> Found:
    """Yield accuracies on rendered and on photographed animals."""
    for row in rows:
        name = f"{model_label(row.model)}, {row.place}".replace(", ", "\n")
        yield from (((row.measure, name, ANIMALS[k]), its) for k, its in enumerate((row.first, row.second)))


def factor_points(rows: Sequence[GroupComparison]) -> Found:
    """Yield by how much each factor changes accuracy."""
    for row in rows:
        factor, test = row.place
        yield (row.measure, f"{factor} ({model_label(row.model)})", ANIMALS[test == PHOTOGRAPHS]), row.difference


def photograph_points(rows: Sequence[GroupComparison]) -> Found:
    """Yield accuracies by the number of photographs in training."""
    what = {OWN: "photographs of each tested animal", OTHERS: "other animals photographed"}
    held = any(row.place.test == HELD_OUT for row in rows)
    for row in rows:
        if row.place.test == HELD_OUT or not held:
            panel = f"{row.measure}, by {what[row.place.world]}"
            both = ((TUNED, row.second), (SCRATCH, row.first))
            yield from (((panel, row.model, start, row.place.count), its) for start, its in both if its.clusters)


def image_points(rows: Sequence[Ladder]) -> Found:
    """Yield accuracies by the number of distinct images of photographs."""
    for row in rows:
        panel = f"{row.measure}, by distinct images of photographs"
        for images, points in zip([0, *row.images], [row.synthetic, *row.tuned], strict=True):
            yield (panel, row.model, TUNED, images), compare_groups(NO_POINTS, points)[1]
        for images, points in zip(row.images, row.scratch, strict=True):
            yield (panel, row.model, SCRATCH, images), compare_groups(NO_POINTS, points)[1]

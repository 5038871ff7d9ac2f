"""A figure for each question, and sample images of the worlds of a study."""

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib

from menagerie.envs.core.figures import COLOURS, chance_line, legend_above, line_style, short, write_png
from menagerie.studies.analysis.samples import sample_sheet
from menagerie.studies.photographs.data import Tested, tests_in
from menagerie.studies.photographs.jobs import Jobs
from menagerie.studies.photographs.measures import KNOWN, RECOGNITION, SWAPS, Level, level
from menagerie.studies.photographs.questions import BOTH, Change, Gap, Ladder, Step
from menagerie.studies.photographs.trainings import BINDING, OTHERS, OWN, SPATIAL, SYNTHETIC, ZERO_SHOT, Training
from menagerie.studies.photographs.worlds import HELD_OUT

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

PANEL, NAMES, ROW = 2.3, 2.6, 0.34  # inches
SCRATCH = "--"
RENDERED, PHOTOGRAPHED = (COLOURS[0], "o", "rendered animals"), (COLOURS[1], "s", "photographed animals")
WIDTH = 4.3  # inches of a panel of curves


def gap_figure(rows: Sequence[Gap]) -> Figure:
    """(a) Accuracy on rendered and on photographed animals: a panel a measure, a row a model and test."""
    names = list(dict.fromkeys((row.model, row.test) for row in rows))
    figure = Figure((NAMES + 3 * PANEL, ROW * 1.5 * len(names) + 0.9), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True, sharex=True)
    for axis, measure in zip(axes, (RECOGNITION, SWAPS, KNOWN), strict=True):
        for row in (gap for gap in rows if gap.measure == measure):
            y = names.index((row.model, row.test))
            draw_level(axis, row.synthetic, y - 0.1, RENDERED)
            draw_level(axis, row.photographs, y + 0.1, PHOTOGRAPHED)
        axis.set_title(measure, fontsize=9)
        chance_line(axis, "x")
        dress(axis)
    axes[0].set_yticks(
        range(len(names)), [f"{short(model)}\n{test.replace(', ', ',' + chr(10))}" for model, test in names]
    )
    axes[0].set(ylim=(len(names) - 0.5, -0.5), xlim=(None, 101))
    axes[0].set_xlabel("accuracy (%)", loc="left", fontsize=9)
    legend_above(figure, looks())
    return figure


def looks() -> list[Line2D]:
    kinds = (RENDERED, PHOTOGRAPHED)
    return [Line2D([], [], linestyle="none", marker=marker, color=color, label=name) for color, marker, name in kinds]


def draw_level(axis: Axes, shown: Level, y: float, look: tuple[str, str, str]) -> None:
    """A point with its interval, lying."""
    color, marker, _ = look
    if math.isnan(shown.mean):
        return
    axis.plot([100 * shown.mean], [y], marker=marker, color=color, markersize=5, linestyle="none")
    if not math.isnan(shown.low):
        axis.plot([100 * shown.low, 100 * shown.high], [y, y], color=color, linewidth=1.5)


def dress(axis: Axes) -> None:
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def step_figure(rows: Sequence[Step]) -> Figure:
    """(b) Accuracy by the number of photographs in training: a row a measure, photographs of tested and of other
    animals beside one another."""
    held = {row.test for row in rows} >= {HELD_OUT}
    rows_shown = [row for row in rows if row.test == HELD_OUT or not held]
    worlds = [world for world in (OWN, OTHERS) if any(row.world == world for row in rows_shown)]
    figure = Figure((WIDTH * len(worlds) + 0.4, 2.4 * len(BOTH)), layout="constrained")
    axes = figure.subplots(len(BOTH), len(worlds), squeeze=False, sharey="row", sharex="col")
    models = list(dict.fromkeys(row.model for row in rows))
    names = {OWN: "photographs of each tested animal", OTHERS: "other animals photographed"}
    for line, measure in zip(axes, BOTH, strict=True):
        for axis, world in zip(line, worlds, strict=True):
            here = [row for row in rows_shown if row.world == world and row.measure == measure]
            places = sorted({row.count for row in here})
            for number, model in enumerate(models):
                mine = {row.count: row for row in here if row.model == model}
                style = line_style(number)
                draw_curve(axis, [(places.index(n), row.tuned) for n, row in mine.items()], style, "-", float(number))
                draw_curve(
                    axis, [(places.index(n), row.scratch) for n, row in mine.items()], style, SCRATCH, number + 0.5
                )
            axis.set_xticks(range(len(places)), list(map(str, places)))
            axis.set_xlim(-0.3, len(places) - 0.7)
            chance_line(axis)
            dress(axis)
        line[0].set_ylabel(f"{measure} (%)", fontsize=9)
    for axis, world in zip(axes[-1], worlds, strict=True):
        axis.set_xlabel(names[world], fontsize=9)
    legend_above(figure, keys(models))
    return figure


def draw_curve(
    axis: Axes, points: Sequence[tuple[int, Level]], style: dict[str, str], stroke: str, shift: float
) -> None:
    """Means with their intervals, upright; lines of several models a little beside one another."""
    known = sorted((x, value) for x, value in points if not math.isnan(value.mean))
    at = [x + 0.05 * shift for x, _ in known]
    axis.plot(at, [100 * value.mean for _, value in known], linestyle=stroke, linewidth=1.5, markersize=4, **style)
    for x, (_, value) in zip(at, known, strict=True):
        if not math.isnan(value.low):
            axis.plot([x, x], [100 * value.low, 100 * value.high], color=style["color"], linewidth=1, linestyle=stroke)


def keys(models: Sequence[str]) -> list[Line2D]:
    """Colours of models, and strokes."""
    shown = [Line2D([], [], label=short(model), **line_style(number)) for number, model in enumerate(models)]
    strokes = (("-", "after synthetic training"), (SCRATCH, "from scratch"))
    return shown + [Line2D([], [], color="0.3", linestyle=stroke, label=name) for stroke, name in strokes]


def ladder_figure(rows: Sequence[Ladder], targets: Sequence[float]) -> Figure:
    """(c) Accuracy by the number of distinct images of photographs."""
    models = list(dict.fromkeys(row.model for row in rows))
    figure = Figure((WIDTH * len(BOTH) + 0.4, 3.0), layout="constrained")
    for axis, measure in zip(figure.subplots(1, len(BOTH), sharey=True), BOTH, strict=True):
        images = sorted({n for row in rows for n in row.images})
        for row in (ladder for ladder in rows if ladder.measure == measure):
            number = models.index(row.model)
            style, places = line_style(number), [images.index(n) + 1 for n in row.images]
            draw_curve(axis, list(zip(places, map(level, row.scratch), strict=True)), style, SCRATCH, number + 0.5)
            tuned = zip([0, *places], map(level, (row.synthetic, *row.tuned)), strict=True)
            draw_curve(axis, list(tuned), style, "-", float(number))
        for target in targets:
            axis.axhline(100 * target, color="0.7", linewidth=0.8, linestyle=(0, (6, 3)), zorder=0.5)
        axis.set_xticks(range(len(images) + 1), ["0", *(f"{n}" for n in images)])
        axis.set_title(measure, fontsize=9)
        axis.set_xlabel("distinct images of photographs", fontsize=9)
        chance_line(axis)
        dress(axis)
    figure.axes[0].set_ylabel("accuracy (%)", fontsize=9)
    legend_above(figure, keys(models))
    return figure


def change_figure(rows: Sequence[Change]) -> Figure:
    """(d) By how much each factor changes accuracy on photographs: a panel a measure."""
    names = list(dict.fromkeys((row.model, row.factor) for row in rows))
    figure = Figure((NAMES + 2 * PANEL, ROW * len(names) + 0.9), layout="constrained")
    axes = figure.subplots(1, len(BOTH), sharey=True)
    for axis, measure in zip(axes, BOTH, strict=True):
        for row in (change for change in rows if change.measure == measure):
            y = names.index((row.model, row.factor))
            if row.test == SYNTHETIC:
                draw_level(axis, row.difference, y - 0.1, RENDERED)
            else:
                draw_level(axis, row.difference, y + 0.1, PHOTOGRAPHED)
        axis.axvline(0, color="0.4", linewidth=1)
        axis.set_title(measure, fontsize=9)
        dress(axis)
    axes[0].set_yticks(range(len(names)), [f"{factor} ({short(model)})" for model, factor in names])
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    axes[0].set_xlabel("percentage points\nchanged minus as it is", loc="left", fontsize=9)
    legend_above(figure, looks())
    return figure


SAMPLES = 5


def sample_sheets(jobs: Jobs, folder: Path) -> dict[str, str]:
    """Draw a row of images with captions for each test, as files and as data URIs."""
    sheets: dict[str, str] = {}
    for kind in (BINDING, SPATIAL) if ZERO_SHOT in jobs.config.parts else (BINDING,):
        for test in jobs.tests(Training(jobs.config.models[0], 0, kind)):
            name = f"{kind}, {test.label}"
            file = folder / f"samples-{name.replace(', ', '-')}.png"
            if sheet := sample_of(test, file):
                sheets[name] = sheet
    return sheets


def sample_of(test: Tested, file: Path) -> str:
    """Some images of a test, drawn evenly, as a file and a data URI; empty where it has none."""
    bench = next((tested for tested in tests_in(test).values() if len(tested.data)), None)
    if bench is None:
        return ""
    swaps = [item for item in bench.items if item.group == "swap"]
    chosen = [swaps[len(swaps) * (2 * k + 1) // (2 * SAMPLES)] for k in range(SAMPLES)]
    images = bench.images([item.images[0] for item in chosen]).permute(0, 2, 3, 1).numpy()
    captions = [(item.texts[0].text, item.texts[1].text) for item in chosen]
    return write_png(file, sample_sheet(list(images), captions))

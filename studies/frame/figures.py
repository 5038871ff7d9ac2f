"""Figures along an axis (lines and points), and what they share with figures of rows: a panel for each combination of
some labels."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from menagerie.studies.analysis.pareto import pareto_front
from menagerie.studies.analysis.words import CHANCES, TITLES, wrap
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.layout import TESTS, Key, keys, label_values, number_places, title, value_words
from menagerie.studies.frame.parts import FigurePart, Front, Lines, RecordsPart, Scatter
from menagerie.studies.report.figures import CHANCE, MOST_TOGETHER, PALE, chance_line, legend_above, line_style

WIDEST = 10.0  # inches, the width of a page; further panels go into another line
PANEL, LARGE = (3.1, 2.5), (6.4, 4.0)  # inches of a panel, and of a single panel of points
STROKES = ("-", "--", "-.", (0, (7, 2)))  # without dots, which mean chance
DASHED: dict[str, Any] = {"color": "0.6", "linewidth": 1, "linestyle": "--"}
# A setting that was tried: wider than a point, so that no point hides it.
RING: dict[str, Any] = {"markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.1, "linestyle": "none"}
WIDE = 5  # an axis over a larger factor has ticks at 1, 2 and 5 times powers of ten
MOST_TICKS = 6  # values of a label that are all ticks
AXES = {"pairs": "animal pairs in training", "hard_negatives": "training pairs with hard negatives"}
Values = dict[Key, Estimate]
Style = Mapping[str, Any]


class DrawnFigure(NamedTuple):
    """A figure, and the numbers in it."""

    figure: Figure
    names: Sequence[str]
    """The names of the labels in the keys of `found`."""
    found: Values
    note: str = ""
    """A sentence for the caption."""


def axis_name(name: str) -> str:
    return AXES.get(name, name.replace("_", " "))


def heading(part: RecordsPart, names: Sequence[str], key: Key, width: int = 24) -> str:
    """Write the title of a panel: a line for each of its labels, except the task swap, which is the default."""
    said = [pair for pair in zip(names, key, strict=True) if pair != ("task", "swap")]
    known = {value: text for value, text in TITLES.items() if value not in part.words.get("subset", {})}
    texts = (known.get(value if name == "subset" else "") or title(part, [name], (value,)) for name, value in said)
    return "\n".join(wrap(text, width) for text in texts)


def panel_chance(part: FigurePart, panel: Mapping[str, Any]) -> float:
    """Return chance in percent for a panel: that of its task, or of the only task of all records."""
    tasks = {*part.records.scores.task}
    task = panel.get("task", tasks.pop() if len(tasks) == 1 else "")
    return part.chances.get(task, CHANCES.get(task, 50.0))


def panels_of(part: FigurePart, found: Values) -> list[Key]:
    """List the panels that have a number, in the order of tables; all panels if none has."""
    every = keys(number_places(part.records), part.panels) or [()]
    filled = {key[: len(part.panels)] for key in found}
    return [key for key in every if key in filled] or every


def panel_axes(count: int, size: tuple[float, float], beside: float = 0.4, **shared: Any) -> tuple[Figure, list[Axes]]:
    """Make a figure with axes for `count` panels, each of `size` in inches, in lines that are filled evenly."""
    lines = -(-count // max(1, int((WIDEST - beside) / size[0])))
    columns = -(-count // lines)  # four are two by two, not three and one
    figure = Figure((size[0] * columns + beside, size[1] * lines + 0.4), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, **shared).ravel()
    for axis in axes[count:]:
        axis.axis("off")
    return figure, list(axes[:count])


def style_axes(axis: Axes) -> None:
    """Give axes small numbers, a pale grid and no box."""
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


class PlacedEstimate(NamedTuple):
    """An estimate, and its position on the x axis."""

    x: float
    its: Estimate
    key: Key


Along = Lines | Scatter


def place_estimates(
    part: Along, names: Sequence[str], found: Values
) -> Mapping[Key, Mapping[Any, list[PlacedEstimate]]]:
    """Return the estimates of each panel by colour and stroke, from left to right, without those that have no position
    on the axis."""
    panels: dict[Key, dict[Any, list[PlacedEstimate]]] = defaultdict(lambda: defaultdict(list))
    own = [name for name in names if name not in TESTS]
    where, tests = ({}, ordinals(part)) if part.x in TESTS else (positions(part, own), {})
    for key, its in found.items():
        labels = dict(zip(names, key, strict=True))
        x = tests.get(labels[part.x]) if tests else where.get(label_values(labels, own))
        if x is not None:
            line = labels[part.colour], labels.get(getattr(part, "stroke", ""))
            panels[label_values(labels, part.panels)][line].append(PlacedEstimate(float(x), its, key))
    for lines_of_panel in panels.values():
        for points in lines_of_panel.values():
            points.sort(key=lambda point: point.x)
    return panels


def positions(part: Along, names: Sequence[str]) -> dict[Key, float]:
    """Return the position of each value of `x`, by the labels of arms: of a number the number itself or the mean of the
    column `at`, of a word its rank in the plan."""
    order, column, found = ordinals(part), getattr(part, "at", "") or part.x, defaultdict(list)
    for arm in part.records.arms:
        place = arm.place
        if place.keys() >= {*names} and isinstance(
            value := order.get(place.get(column), place.get(column)), int | float
        ):
            found[label_values(place, names)].append(value)
    return {key: float(np.mean(values)) for key, values in found.items()}


def ordinals(part: Along) -> dict[Any, int]:
    """Number the values of `x` in the order of the plan if they are words on an axis of `Lines`; else empty."""
    values = part.records.labels(part.x) if isinstance(part, Lines) and not part.at else []
    return {} if all(isinstance(v, int | float) for v in values) else {v: number for number, v in enumerate(values)}


def draw_lines(part: Lines) -> DrawnFigure:
    """Draw a line for each colour and stroke, with the interval as a band and larger points for the runs of `large`."""
    names = list(dict.fromkeys([*part.panels, part.colour, *filter(None, [part.stroke]), part.x]))
    found, own = part.records.estimates(names), [name for name in names if name not in TESTS]
    colours, strokes = (part.records.labels(name) if name else [None] for name in (part.colour, part.stroke))
    panels, drawn = panels_of(part, found), place_estimates(part, names, found)
    large = {label_values(arm.place, own) for arm in part.large.arms} if part.large else ()
    figure, axes = panel_axes(len(panels), PANEL, sharex=not part.at, sharey=True)
    for axis, panel in zip(axes, panels, strict=True):
        axis.set_title(heading(part, part.panels, panel), fontsize=9, parse_math=False)
        for (colour, stroke), points in drawn[panel].items():
            style = line_style(colours.index(colour))
            dashes = {"linestyle": STROKES[strokes.index(stroke) % len(STROKES)]}
            draw_line(axis, [point[:2] for point in points], style | dashes)
            for x, its, key in points:
                if label_values(dict(zip(names, key, strict=True)), own) in large:
                    axis.plot([x], [100 * its.value], **style, linestyle="none", markersize=8)
    colours += draw_beside(part, axes, panels, colours)
    keys_to = [
        Line2D([], [], label=title(part, [part.stroke], (value,)), color="0.3", linestyle=STROKES[k % len(STROKES)])
        for k, value in enumerate(strokes if part.stroke else ())
    ]
    return finish_figure(part, figure, dict(zip(panels, axes, strict=True)), names, found, colours, keys_to)


def draw_line(axis: Axes, points: Iterable[tuple[float, Estimate]], style: Style) -> None:
    """Draw estimates from left to right, with a band where they have an interval."""
    ordered = sorted(points, key=lambda point: point[0])
    x = [where for where, _ in ordered]
    low, value, high = (100 * np.array([getattr(its, n) for _, its in ordered]) for n in ("low", "value", "high"))
    axis.plot(x, value, markersize=4, linewidth=1.5, **style)
    axis.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0)


def draw_beside(part: Lines, axes: Sequence[Axes], panels: Sequence[Key], colours: Sequence[Any]) -> list[Any]:
    """Draw dashed lines for the records `beside`, which have no `x`; returns the colours that only these have."""
    beside = part.beside.estimates([*part.panels, part.colour]) if part.beside else {}
    every = list(dict.fromkeys([*colours, *(key[-1] for key in beside)]))
    for (*where, colour), its in beside.items():
        for axis, panel in zip(axes, panels, strict=True):
            if tuple(where) == panel:
                axis.axhline(100 * its.value, **DASHED | {"color": line_style(every.index(colour))["color"]})
    return every[len(colours) :]


def draw_scatter(part: Scatter) -> DrawnFigure:
    """Draw the points of each colour. Without `panels` each of many colours has its own panel, with the others pale."""
    names = list(dict.fromkeys([*part.panels, part.colour, *part.points]))
    found, colours = part.records.estimates(names), part.records.labels(part.colour)
    judged = part.judged.estimates(names) if isinstance(part, Front) and part.judged else {}
    panels, drawn = [(key, colours) for key in panels_of(part, found)], place_estimates(part, names, found)
    if alone := len(colours) > MOST_TOGETHER and not part.panels:
        panels = [((), [colour]) for colour in colours]
    figure, axes = panel_axes(len(panels), LARGE if len(panels) == 1 else PANEL, sharex=True, sharey=True)
    for axis, (panel, strong) in zip(axes, panels, strict=True):
        name = title(part, [part.colour], (strong[0],)) if alone else heading(part, part.panels, panel)
        axis.set_title(name, fontsize=9, parse_math=False)
        for number, colour in enumerate(colours):
            style = line_style(number) if colour in strong else PALE
            draw_settings(axis, part, drawn[panel][colour, None], judged, style)
    axes_of = {(*panel, *strong): axis for axis, (panel, strong) in zip(axes, panels, strict=True)}
    marks = {"a setting": {"marker": "o", **RING}, "the best at its cost": {"linewidth": 1}}
    marks |= {"these on the test": {"marker": "o", "linestyle": "none"}} if judged else {}
    more = [Line2D([], [], color="0.4", label=label, **its) for label, its in marks.items() if isinstance(part, Front)]
    return finish_figure(part, figure, axes_of, names, found, [] if alone else colours, more, "none")


def draw_settings(axis: Axes, part: Scatter, points: Sequence[PlacedEstimate], judged: Values, style: Style) -> None:
    """Draw all points of one colour. In a `Front` they are rings, and steps join those on the front, each of which also
    has a point at its accuracy in `judged`, if that has one."""
    x, y = [point.x for point in points], [100 * point.its.value for point in points]
    marks = {"marker": "none" if isinstance(part, Front) else ".", **style, "linestyle": "none", "markersize": 5}
    if not isinstance(part, Front):
        axis.plot(x, y, **marks)
        return
    best = pareto_front(x, y)
    if "marker" in style:
        axis.plot(x, y, **{**style, **RING})
    there = [k for k in best if points[k].key in judged]
    axis.plot([x[k] for k in there], [100 * judged[points[k].key].value for k in there], **marks)
    line = {"color": style["color"], "linewidth": 1, "zorder": style.get("zorder", 2)}
    axis.step([x[k] for k in best], [y[k] for k in best], where="post", **line)


def finish_figure(
    part: Along,
    figure: Figure,
    axes: Mapping[Key, Axes],
    names: Sequence[str],
    found: Values,
    colours: Sequence[Any],
    more: Sequence[Line2D],
    stroke: str = "-",
) -> DrawnFigure:
    """Finish a figure with ticks, level, chance and legend. Called last, because panels share their limits."""
    for panel, axis in axes.items():
        finish_panel(axis, part, dict(zip(part.panels, panel, strict=False)))
    figure.supxlabel(getattr(part, "along", "") or axis_name(getattr(part, "at", "") or part.x), fontsize=9)
    figure.supylabel("accuracy (%)", fontsize=9)
    texts = [title(part, [part.colour], (value,)) for value in colours]
    keys_to = [Line2D([], [], label=text, linestyle=stroke, **line_style(k)) for k, text in enumerate(texts)]
    level = [Line2D([], [], label=f"{part.level:.0%}", **DASHED)] if part.level is not None else []
    legend_above(figure, [*keys_to, *more, *level, Line2D([], [], label="chance", **CHANCE)])
    return DrawnFigure(figure, names, found)


def finish_panel(axis: Axes, part: Along, panel: Mapping[str, Any]) -> None:
    """Set the limits and ticks of a panel, and draw its level and chance."""
    style_axes(axis)
    axis.set_xscale("log" if part.log else "linear")
    order, values = ordinals(part), part.records.labels(part.x)
    if order or (isinstance(part, Lines) and len(values) <= MOST_TICKS and not part.at):
        axis.set_xticks(
            [order.get(v, v) for v in values], [value_words(part, part.x, v) for v in values], parse_math=False
        )
        axis.xaxis.set_minor_locator(NullLocator())
    else:
        set_round_ticks(axis, part.log)
    axis.tick_params(labelbottom=True)
    if part.level is not None:
        axis.axhline(100 * part.level, **DASHED)
    chance = panel_chance(part, panel)
    if isinstance(part, Lines):
        axis.set_ylim(min(axis.get_ylim()[0], chance - 2), 101)
    chance_line(axis, percent=chance)


def set_round_ticks(axis: Axes, log: bool) -> None:
    """Set ticks at round numbers, written out in full."""
    low, high = axis.get_xlim()
    wide = log and high > WIDE * low
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=9) if wide else MaxNLocator(4))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.xaxis.set_minor_locator(NullLocator())

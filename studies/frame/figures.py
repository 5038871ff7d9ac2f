"""The figures of a page: lines, bars and heat maps of estimates, a panel for each combination of some labels."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from menagerie.envs.core.figures import (
    CHANCE,
    chance_line,
    legend_above,
    line_style,
)
from menagerie.studies.analysis.words import CHANCES, TITLES, wrap
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.layout import (
    TESTS,
    Key,
    called,
    key_of,
    keys,
    places,
    title,
)
from menagerie.studies.frame.parts import Figured, Lines, Shown

WIDEST = 10.0  # inches, as wide as a page: more panels go on in a further line
PANEL = (3.1, 2.5)  # inches of a panel of lines
BARS, NAMES = 2.2, 1.7  # inches of a panel of bars, and of what stands beside it
STROKES = ("-", "--", "-.", (0, (7, 2)))  # not dots, which are chance
DASHED: dict[str, Any] = {"color": "0.6", "linewidth": 1, "linestyle": "--"}
WIDE = 5  # from so many times on, 1, 2 and 5 are ticks enough on a logarithmic axis
MOST_TICKS = 6  # values of a label that are ticks themselves
AXES = {"pairs": "animal pairs in training", "hard_negatives": "training pairs with hard negatives"}
Values = dict[Key, Estimate]


class Drawn(NamedTuple):
    """A figure, and the numbers in it."""

    figure: Figure
    names: Sequence[str]
    """The labels of each number."""
    found: Values
    note: str = ""
    """What the caption has to say."""


def axis_name(name: str) -> str:
    """A label as the name of an axis."""
    return AXES.get(name, name.replace("_", " "))


def heading(part: Shown, names: Sequence[str], key: Key, width: int = 24) -> str:
    """The title of a panel: a line for each of its labels, but for the task that all know."""
    said = [pair for pair in zip(names, key, strict=True) if pair != ("task", "swap")]
    return "\n".join(wrap(titled(part, *pair), width) for pair in said)


def titled(part: Shown, name: str, value: Any) -> str:
    """A label in a title."""
    known = name == "subset" and value in TITLES and value not in part.words.get(name, {})
    return TITLES[value] if known else title(part, [name], (value,))


def chance_of(part: Shown, panel: Mapping[str, Any]) -> float:
    """Chance of a panel in percent: that of its task, or of the one task of all records."""
    tasks = {*part.records.scores.task}
    return CHANCES.get(panel.get("task", tasks.pop() if len(tasks) == 1 else ""), 50.0)


def panels_of(part: Figured, found: Values) -> list[Key]:
    """The panels that have a number, in the order of tables; all if none has."""
    every = keys(places(part.records), part.panels) or [()]
    filled = {key[: len(part.panels)] for key in found}
    return [key for key in every if key in filled] or every


def panel_axes(count: int, size: tuple[float, float], beside: float = 0.4, **shared: Any) -> tuple[Figure, list[Axes]]:
    """A figure with axes for some panels, each of a size in inches, in lines that are filled evenly."""
    lines = -(-count // max(1, int((WIDEST - beside) / size[0])))
    columns = -(-count // lines)  # four are two by two, not three and one
    figure = Figure((size[0] * columns + beside, size[1] * lines + 0.4), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, **shared).ravel()
    for axis in axes[count:]:
        axis.axis("off")
    return figure, list(axes[:count])


def dress(axis: Axes) -> None:
    """Small numbers, a pale grid and no box."""
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def lines(part: Lines) -> Drawn:
    """A line for each colour and stroke, with the interval as a band."""
    names = list(dict.fromkeys([*part.panels, part.colour, *filter(None, [part.stroke]), part.x]))
    found, where = part.records.estimates(names), positions(part, names)
    colours, strokes = (part.records.labels(name) if name else [None] for name in (part.colour, part.stroke))
    panels, drawn = panels_of(part, found), series(part, names, found, where)
    figure, axes = panel_axes(len(panels), PANEL, sharex=not part.at, sharey=True)
    for axis, panel in zip(axes, panels, strict=True):
        axis.set_title(heading(part, part.panels, panel), fontsize=9, parse_math=False)
        for (colour, stroke), points in drawn[panel].items():
            style = line_style(colours.index(colour)) | {"linestyle": STROKES[strokes.index(stroke) % len(STROKES)]}
            draw_line(axis, points, style)
    draw_levels(part, axes, panels, colours)
    draw_large(part, dict(zip(panels, axes, strict=True)), names, found, where)
    for axis, panel in zip(axes, panels, strict=True):  # once all is drawn: they share limits, which stay as they are
        finish(axis, part, dict(zip(part.panels, panel, strict=True)))
    figure.supylabel("accuracy (%)", fontsize=9)
    figure.supxlabel(axis_name(part.at or part.x), fontsize=9)
    legend_above(figure, legend(part, colours, strokes))
    return Drawn(figure, names, found)


Series = dict[tuple[Any, Any], list[tuple[float, Estimate]]]


def series(part: Lines, names: Sequence[str], found: Values, where: Mapping[Key, float]) -> Mapping[Key, Series]:
    """The lines of each panel by colour and stroke: where along `x`, and what."""
    panels: dict[Key, Series] = defaultdict(lambda: defaultdict(list))
    for key, its in found.items():
        labels = dict(zip(names, key, strict=True))
        line = labels[part.colour], labels.get(part.stroke)
        panels[key_of(labels, part.panels)][line].append((where[arm_key(names, key)], its))
    return panels


def draw_large(
    part: Lines, axes: Mapping[Key, Axes], names: Sequence[str], found: Values, where: Mapping[Key, float]
) -> None:
    """Larger points of the runs that are to have them."""
    labels, colours = [name for name in names if name not in TESTS], part.records.labels(part.colour)
    large = {key_of(arm.place, labels) for arm in part.large.arms} if part.large else ()
    for key, its in found.items():
        if (at := arm_key(names, key)) in large:
            place = dict(zip(names, key, strict=True))
            style = line_style(colours.index(place[part.colour])) | {"linestyle": "none", "markersize": 8}
            axes[key_of(place, part.panels)].plot([where[at]], [100 * its.value], **style)


def arm_key(names: Sequence[str], key: Key) -> Key:
    """The labels of a key that are of arms."""
    return tuple(value for name, value in zip(names, key, strict=True) if name not in TESTS)


def positions(part: Lines, names: Sequence[str]) -> dict[Key, float]:
    """Where each value of `x` stands, by the labels of arms: at itself, at the mean of what was measured, or, of words,
    in the order of the plan."""
    order, found = ordinals(part), {}
    for arm in part.records.arms:
        place = arm.place
        if place.keys() >= {*names} - {*TESTS} and isinstance(value := place.get(part.at or part.x), int | float | str):
            key = tuple(place[name] for name in names if name not in TESTS)
            found.setdefault(key, []).append(order.get(value, value))
    return {key: float(np.mean(values)) for key, values in found.items()}


def ordinals(part: Lines) -> dict[Any, int]:
    """The numbers of the values of `x` where these are words."""
    values = part.records.labels(part.x)
    words = not part.at and not all(isinstance(value, int | float) for value in values)
    return {value: number for number, value in enumerate(values)} if words else {}


def draw_line(axis: Axes, points: Iterable[tuple[float, Estimate]], style: Mapping[str, Any]) -> None:
    """Estimates from left to right, with a band where they have an interval."""
    ordered = sorted(points, key=lambda point: point[0])
    x = [where for where, _ in ordered]
    low, value, high = (100 * np.array([getattr(its, n) for _, its in ordered]) for n in ("low", "value", "high"))
    axis.plot(x, value, markersize=4, linewidth=1.5, **style)
    axis.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0)


def finish(axis: Axes, part: Lines, panel: Mapping[str, Any]) -> None:
    """Limits, ticks and chance of a panel of lines."""
    dress(axis)
    order, values = ordinals(part), part.records.labels(part.x)
    axis.set_xscale("log" if part.log else "linear")
    if order or (len(values) <= MOST_TICKS and not part.at):
        axis.set_xticks([order.get(v, v) for v in values], [called(part, part.x, v) for v in values], parse_math=False)
        axis.xaxis.set_minor_locator(NullLocator())
    else:
        rounded_ticks(axis, part.log)
    axis.tick_params(labelbottom=True)
    axis.set_ylim(None, 101)
    chance_line(axis, percent=chance_of(part, panel))


def rounded_ticks(axis: Axes, log: bool) -> None:
    """Ticks at round numbers, which are written out."""
    low, high = axis.get_xlim()
    wide = log and high > WIDE * low
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=9) if wide else MaxNLocator(4))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.xaxis.set_minor_locator(NullLocator())


def draw_levels(part: Lines, axes: Sequence[Axes], panels: Sequence[Key], colours: list[Any]) -> None:
    """The level that all are compared with, and what has no `x`."""
    beside = part.beside.estimates([*part.panels, part.colour]) if part.beside else {}
    colours += dict.fromkeys(key[-1] for key in beside if key[-1] not in colours)
    for axis, panel in zip(axes, panels, strict=True):
        if part.level is not None:
            axis.axhline(100 * part.level, **DASHED)
        for *where, colour in beside:
            if tuple(where) == panel:
                style = DASHED | {"color": line_style(colours.index(colour))["color"]}
                axis.axhline(100 * beside[*panel, colour].value, **style)


def legend(part: Lines, colours: Sequence[Any], strokes: Sequence[Any]) -> list[Line2D]:
    """What colours, strokes and level lines mean."""
    found = [
        Line2D([], [], label=title(part, [part.colour], (value,)), **line_style(number))
        for number, value in enumerate(colours)
    ]
    for number, value in enumerate(strokes if part.stroke else ()):
        style = {"color": "0.3", "linestyle": STROKES[number % len(STROKES)]}
        found.append(Line2D([], [], label=title(part, [part.stroke], (value,)), **style))
    if part.level is not None:
        found.append(Line2D([], [], label=f"{part.level:.0%}", **DASHED))
    return [*found, Line2D([], [], label="chance", **CHANCE)]

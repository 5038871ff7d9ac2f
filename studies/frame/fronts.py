"""Figures of accuracy against cost: a point for each setting, and the best at each cost."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from menagerie.envs.core.figures import CHANCE, MOST_TOGETHER, PALE, chance_line, legend_above, line_style
from menagerie.studies.analysis.pareto import front
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.figures import (
    DASHED,
    PANEL,
    Drawn,
    Values,
    axis_name,
    chance_of,
    dress,
    heading,
    panel_axes,
    panels_of,
    rounded_ticks,
)
from menagerie.studies.frame.layout import TESTS, Key, key_of, title
from menagerie.studies.frame.parts import Front, Scatter

LARGE = (6.4, 4.0)  # inches of a panel that stands alone
# Of a setting that was tried: wider than a point, so that none hides it.
RING: dict[str, Any] = {"markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.1, "linestyle": "none"}


class Setting(NamedTuple):
    """A point of a figure: its cost, its accuracy, and where it stands on other records."""

    cost: float
    value: Estimate
    judged: Estimate | None


Settings = Mapping[Key, Mapping[Any, list[Setting]]]


def scatter(part: Scatter) -> Drawn:
    """The settings of each colour; of many colours each has a panel, in which the others are pale."""
    names = list(dict.fromkeys([*part.panels, part.colour, *part.points]))
    found = part.records.estimates(names)
    colours, settings = part.records.labels(part.colour), settings_of(part, names, found)
    panels = [(key, colours) for key in panels_of(part, found)]
    if alone := len(colours) > MOST_TOGETHER and not part.panels:
        panels = [((), [colour]) for colour in colours]
    size = LARGE if len(panels) == 1 else PANEL
    figure, axes = panel_axes(len(panels), size, sharex=True, sharey=True)
    for axis, (panel, strong) in zip(axes, panels, strict=True):
        name = title(part, [part.colour], (strong[0],)) if alone else heading(part, part.panels, panel)
        axis.set_title(name, fontsize=9, parse_math=False)
        for number, colour in enumerate(colours):
            draw_settings(axis, part, settings[panel][colour], line_style(number) if colour in strong else PALE)
    for axis, (panel, _) in zip(axes, panels, strict=True):  # once all is drawn: they share limits
        finish(axis, part, dict(zip(part.panels, panel, strict=True)))
    figure.supxlabel(axis_name(part.x), fontsize=9)
    figure.supylabel("accuracy (%)", fontsize=9)
    legend_above(figure, legend(part, [] if alone else colours))
    return Drawn(figure, names, found)


def settings_of(part: Scatter, names: Sequence[str], found: Values) -> Settings:
    """The settings by panel and colour, cheapest first; those without a cost are left out."""
    judged = part.judged.estimates(names) if isinstance(part, Front) and part.judged else {}
    costs, settings = costs_of(part, names), defaultdict(lambda: defaultdict(list))
    for key, value in found.items():
        labels = dict(zip(names, key, strict=True))
        if (cost := costs.get(key_of(labels, [name for name in names if name not in TESTS]))) is not None:
            setting = Setting(cost, value, judged.get(key))
            settings[key_of(labels, part.panels)][labels[part.colour]].append(setting)
    for of_panel in settings.values():
        for listed in of_panel.values():
            listed.sort(key=lambda setting: setting.cost)
    return settings


def costs_of(part: Scatter, names: Sequence[str]) -> dict[Key, float]:
    """The mean cost of the arms of each setting."""
    costs: dict[Key, list[float]] = defaultdict(list)
    for arm in part.records.arms:
        place = arm.place
        if isinstance(cost := place.get(part.x), int | float) and place.keys() >= {*names} - {*TESTS}:
            costs[key_of(place, [name for name in names if name not in TESTS])].append(cost)
    return {key: float(np.mean(values)) for key, values in costs.items()}


def draw_settings(axis: Axes, part: Scatter, settings: Sequence[Setting], style: Mapping[str, Any]) -> None:
    """All settings of one colour; of a front as rings, with a step from each that is on it to the next."""
    costs, values = [its.cost for its in settings], [100 * its.value.value for its in settings]
    if not isinstance(part, Front):
        axis.plot(costs, values, **{**style, "linestyle": "none", "marker": style.get("marker", ".")}, markersize=5)
        return
    best = [settings[k] for k in front(costs, values)]
    if "marker" in style:
        axis.plot(costs, values, **{**style, **RING})
    judged = [(its.cost, 100 * its.judged.value) for its in best if its.judged]
    points = {**style, "linestyle": "none", "markersize": 5, "marker": style.get("marker", "none")}
    axis.plot(*zip(*judged, strict=True) if judged else ([], []), **points)
    line = {"color": style["color"], "linewidth": 1, "zorder": style.get("zorder", 2)}
    axis.step([its.cost for its in best], [100 * its.value.value for its in best], where="post", **line)


def finish(axis: Axes, part: Scatter, panel: Mapping[str, Any]) -> None:
    """Ticks, level and chance of a panel."""
    dress(axis)
    axis.set_xscale("log" if part.log else "linear")
    rounded_ticks(axis, part.log)
    if part.level is not None:
        axis.axhline(100 * part.level, **DASHED)
    chance_line(axis, percent=chance_of(part, panel))
    axis.tick_params(labelbottom=True)


def legend(part: Scatter, colours: Sequence[Any]) -> list[Line2D]:
    """What colours, rings and lines mean."""
    keys = [
        Line2D([], [], label=title(part, [part.colour], (value,)), **line_style(number) | {"linestyle": "none"})
        for number, value in enumerate(colours)
    ]
    if isinstance(part, Front):
        keys.append(Line2D([], [], color="0.4", marker="o", label="a setting", **RING))
        keys.append(Line2D([], [], color="0.4", linewidth=1, label="the best at its cost"))
        if part.judged:
            keys.append(Line2D([], [], color="0.4", marker="o", linestyle="none", label="these on the test"))
    if part.level is not None:
        keys.append(Line2D([], [], label=f"{part.level:.0%}", **DASHED))
    return [*keys, Line2D([], [], label="chance", **CHANCE)]

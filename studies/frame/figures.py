"""Draws the figures of a page as altair charts, with a panel for each combination of some labels."""

import json
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from menagerie.studies.analysis.pareto import pareto_front
from menagerie.studies.analysis.tables import number_text
from menagerie.studies.analysis.words import CHANCES
from menagerie.studies.frame.charts import DASHED, GREY, HEIGHT, WIDTH, chance_rule, panels
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.layout import TESTS, Key, PartNumbers, label_values, varying_labels
from menagerie.studies.frame.parts import Bars, FigurePart, Front, HeatMap, Lines, PlacedPart, RecordsPart

AXES = {"pairs": "animal pairs in training", "hard_negatives": "training pairs with hard negatives"}
ACCURACY = "accuracy (%)"
PALE = "A pale bar: the model prefers the same caption whatever the image, so the bar says nothing of binding."
ROW = 22  # pixels of a row, for each colour in it
LONGEST = 420  # pixels of a row's name
SQUARE = 58
MOST_TOGETHER = 6  # colours in one panel of points
MOST_TICKS = 8  # values of a label that are all ticks
COLUMNS = ["kind", "panel", "chance", "value", "low", "high", "estimate", "colour", "stroke", "x", "at"]


class DrawnFigure(NamedTuple):
    """A chart, and the numbers in it."""

    chart: alt.TopLevelMixin
    numbers: PartNumbers
    note: str = ""


def axis_name(name: str) -> str:
    return AXES.get(name, name.replace("_", " "))


def heading(part: RecordsPart, names: Sequence[str], key: Key) -> str:
    """Write the title of a panel: a line for each of its labels, except the task swap, which is the default."""
    said = [pair for pair in zip(names, key, strict=True) if pair != ("task", "swap")]
    return "\n".join(textwrap.fill(part.title([name], [value]), 32) for name, value in said)


def panel_row(part: FigurePart, panel: Key) -> dict[str, Any]:
    """Return the columns of a panel: its title, and chance in percent, of its task or of the only one there is."""
    tasks = {*part.records.scores.task}
    task = dict(zip(part.panels, panel, strict=True)).get("task", tasks.pop() if len(tasks) == 1 else "")
    return {"panel": heading(part, part.panels, panel), "chance": part.chances.get(task, CHANCES.get(task, 50.0))}


def percents(its: Estimate) -> dict[str, Any]:
    return {"value": 100 * its.value, "low": 100 * its.low, "high": 100 * its.high, "estimate": str(its)}


def estimate_row(part: PlacedPart, labels: Mapping[str, Any], its: Estimate, kind: str) -> dict[str, Any]:
    """Return the columns of an estimate with these labels, without its place."""
    sides = {"colour": part.colour, "stroke": part.stroke}
    texts = {side: part.title([name], [labels[name]]) if name else "" for side, name in sides.items()}
    return {"kind": kind, **panel_row(part, label_values(labels, part.panels)), **texts, **percents(its)}


def places_on_axis(part: PlacedPart, names: Sequence[str]) -> dict[Key, float]:
    """Return the mean of a measured column, the axis of the part, over the arms with the same labels."""
    found = defaultdict(list)
    for arm in part.records.arms:
        if arm.place.keys() >= {*names} and isinstance(value := arm.place.get(part.at or part.x), int | float):
            found[label_values(arm.place, names)].append(value)
    return {key: float(np.mean(values)) for key, values in found.items()}


def placed_frame(numbers: PartNumbers, part: PlacedPart) -> tuple[pd.DataFrame, list[str]]:
    """Return a row for each estimate that has a place on the axis, and the names of all colours in order."""
    own, rows = [name for name in numbers.names if name not in TESTS], []
    given = part.x in numbers.names and not part.at
    where = {} if given else places_on_axis(part, own)
    for key, its in numbers.found.items():
        labels = dict(zip(numbers.names, key, strict=True))
        x = labels[part.x] if given else where.get(label_values(labels, own))
        if x is not None:
            place = {"x": x, "at": part.word(part.x, x) if given else f"{x:,g}", "key": key}
            rows.append(estimate_row(part, labels, its, "estimate") | place)
    colours = [part.title([part.colour], [value]) for value in part.records.labels(part.colour)]
    frame = pd.DataFrame(rows, columns=None if rows else [*COLUMNS, "key"])
    return frame.assign(x=frame["at"]) if has_words(part) else frame.sort_values("x", kind="stable"), colours


def has_words(part: PlacedPart) -> bool:
    return not part.at and not all(isinstance(value, int | float) for value in part.records.labels(part.x))


def x_axis(part: PlacedPart) -> alt.X:
    """Make the axis of `x`: words in the order of the plan, ticks at few values, else at round numbers."""
    name, values = part.along or axis_name(part.at or part.x), part.records.labels(part.x)
    if has_words(part):
        words = [part.word(part.x, value) for value in values]
        return alt.X("x:N", title=name, sort=words, scale=alt.Scale(padding=0.3))
    scale = alt.Scale(type="log" if part.log else "linear", zero=False, nice=False, padding=12)
    axis = alt.Axis(format=",~g", tickCount=5, labelOverlap=True)
    if isinstance(part, Lines) and not part.at and len(values) <= MOST_TICKS:
        texts = json.dumps({str(value): part.word(part.x, value) for value in values})
        axis = alt.Axis(values=values, labelExpr=f"{texts}[toString(datum.value)]", labelOverlap=True)
    return alt.X("x:Q", title=name, scale=scale, axis=axis)


def of_kind(kind: str) -> alt.Chart:
    return alt.Chart().transform_filter(alt.datum.kind == kind)


def level_rule(level: float | None) -> list[alt.Chart]:
    if level is None:
        return []
    rule = alt.Chart().mark_rule(strokeDash=DASHED, color="#999")
    return [rule.encode(y=alt.YDatum(100 * level), tooltip=alt.value(f"{level:.0%}"))]


def draw_lines(part: Lines) -> DrawnFigure:
    numbers = PartNumbers(part, list(dict.fromkeys(filter(None, [*part.panels, part.colour, part.stroke, part.x]))))
    (frame, colours), beside = placed_frame(numbers, part), beside_rows(part)
    frame = pd.concat([frame.drop(columns="key"), *([pd.DataFrame(beside)] if beside else [])], ignore_index=True)
    floor = max(0.0, float(np.nanmin([*frame["low"], *frame["value"], *frame["chance"], 50.0])) - 2)
    scale = alt.Scale(domain=[floor, 101], nice=False)
    y, low = (alt.Y(f"{name}:Q", title=ACCURACY, scale=scale) for name in ("value", "low"))
    order = list(dict.fromkeys([*colours, *(row["colour"] for row in beside)]))
    colour, shape = alt.Color("colour:N", sort=order), alt.Shape("colour:N", sort=order, legend=None)
    look: dict[str, Any] = {"x": x_axis(part), "color": colour}
    legend = alt.Legend(symbolType="stroke", symbolStrokeColor="#333")
    dash = {"strokeDash": alt.StrokeDash("stroke:N", legend=legend)} if part.stroke else {}
    tips = ["colour:N", *(["stroke:N"] if part.stroke else []), alt.Tooltip("at:N", title=part.x), "estimate:N"]
    layers = [
        chance_rule(y=alt.Y("min(chance):Q", title=ACCURACY, scale=scale)),
        *level_rule(part.level),
        of_kind("estimate").mark_area(opacity=0.18).encode(**look, detail="stroke:N", y=low, y2="high:Q"),
        of_kind("estimate").mark_line(size=1.5).encode(**look, **dash, y=y),
        of_kind("estimate").mark_point(filled=True, size=40, opacity=1).encode(**look, y=y, shape=shape, tooltip=tips),
        of_kind("beside").mark_rule(strokeDash=DASHED).encode(color=colour, y=y, tooltip=["colour:N", "estimate:N"]),
    ]
    return DrawnFigure(panels(layers, frame, panel_names(numbers, part)), numbers)


def beside_rows(part: Lines) -> list[dict[str, Any]]:
    """Return a row for each estimate of the records `beside`, which have no `x`."""
    names = [*part.panels, part.colour]
    found = part.beside.estimates(names).items() if part.beside else ()
    labelled = ((dict(zip(names, key, strict=True)) | {part.stroke: ""}, its) for key, its in found)
    return [estimate_row(part, labels, its, "beside") for labels, its in labelled]


def panel_names(numbers: PartNumbers, part: FigurePart) -> list[str]:
    return [heading(part, part.panels, key) for key in numbers.panels]


def draw_front(part: Front) -> DrawnFigure:
    """Draw a ring for each setting, steps along the best, and points at how these do on the records `judged`. Without
    `panels`, each of many colours has its own panel."""
    numbers = PartNumbers(part, list(dict.fromkeys([*part.panels, part.colour, *part.points])))
    (frame, colours), every = placed_frame(numbers, part), panel_names(numbers, part)
    if len(colours) > MOST_TOGETHER and not part.panels:
        frame["panel"], every = frame["colour"], colours
    judged = part.judged.estimates(numbers.names) if part.judged else {}
    fronts = frame.groupby(["panel", "colour"], sort=False)
    best = {its["key"].iloc[k] for _, its in fronts for k in pareto_front([*its["x"]], [*its["value"]])}
    frame["best"] = [key in best for key in frame["key"]]
    frame["judged"] = [100 * judged[key].value if key in judged else np.nan for key in frame["key"]]
    y = alt.Y("value:Q", title=ACCURACY, scale=alt.Scale(zero=False))
    look = {"x": x_axis(part), "color": alt.Color("colour:N", sort=colours)}
    dots = {"shape": alt.Shape("colour:N", sort=colours, legend=None), "tooltip": ["colour:N", "x:Q", "estimate:N"]}
    on_front = alt.Chart().transform_filter("datum.best")
    filled = on_front.mark_point(filled=True, size=45, opacity=1)
    layers = [
        chance_rule(y=alt.Y("min(chance):Q", title=ACCURACY)),
        *level_rule(part.level),
        alt.Chart().mark_point(size=45).encode(**look, **dots, y=y),
        on_front.mark_line(interpolate="step-after", size=1.2).encode(**look, y=y),
        filled.encode(**look, **dots, y=alt.Y("judged:Q", title=ACCURACY)),
    ]
    note = "Hollow: settings; stairs: the best at their cost" + ("; filled: these on the test." if judged else ".")
    return DrawnFigure(panels(layers, frame.drop(columns="key"), every, HEIGHT + 40, WIDTH + 60), numbers, note)


def draw_bars(part: Bars) -> DrawnFigure:
    numbers = PartNumbers(part, [*part.panels, *part.rows, *filter(None, [part.colour])])
    frame, signed = bar_frame(numbers, part), part.against is not None
    dotted, pale = part.dots or signed, "" if part.dots or signed or not frame["liked"].any() else PALE
    rows, colours = ([*frame[name].dropna().unique()] for name in ("row", "colour"))
    name = "percentage points" if signed else f"{ACCURACY}, dotted: chance"
    scale = alt.Scale(zero=signed, nice=False, padding=8) if dotted else alt.Scale(domain=[0, 100])
    x = alt.X("value:Q", title=name, scale=scale)
    y = alt.Y("row:N", sort=rows, title=None, axis=alt.Axis(labelLimit=LONGEST))
    look: dict[str, Any] = {"y": y}
    if part.colour:
        look |= {"yOffset": alt.YOffset("colour:N", sort=colours), "color": alt.Color("colour:N", sort=colours)}
    tips = ["row:N", *(["colour:N"] if part.colour else []), "estimate:N"]
    shown, black = of_kind("estimate"), look | {"color": alt.value("#222")}
    ends = {"x": alt.X("from:Q", title=name), "x2": "to:Q"}
    if dotted:
        seeds = of_kind("seed").mark_point(filled=True, size=25, opacity=0.35).encode(**look, x=x)
        number = shown.mark_point(filled=True, size=50, opacity=1).encode(**look, x=x, tooltip=tips)
        layers = [seeds, number, shown.mark_rule(size=1.5).encode(**look, **ends)]
    else:
        opacity = alt.condition("datum.liked", alt.value(0.35), alt.value(1))
        text = shown.mark_text(align="left", fontSize=10).encode(**black, x=alt.value(WIDTH + 4), text="text:N")
        bars = shown.mark_bar().encode(**look, x=x, tooltip=tips, opacity=opacity)
        layers = [bars, shown.mark_rule().encode(**black, **ends), text]
    nought = alt.Chart().mark_rule(color=GREY).encode(x=alt.XDatum(0))
    layers.append(nought if signed else chance_rule(x=alt.X("min(chance):Q", title=name)))
    layers.append(of_kind("beside").mark_rule(strokeDash=DASHED, color="#999").encode(x=x))
    every = panel_names(numbers, part)
    chart = panels(layers, frame, every, ROW * len(rows) * max(1, len(colours) if part.colour else 1))
    return DrawnFigure(chart.properties(spacing={"row": 24, "column": 76}) if len(every) > 1 else chart, numbers, pale)


def bar_frame(numbers: PartNumbers, part: Bars) -> pd.DataFrame:
    """Return a row for each number, also for missing ones, the single seeds of dots, and the means of `beside`."""
    rows, seeds, found = numbers.rows(part.rows), defaultdict(list), []
    for (*key, _), its in part.records.estimates([*numbers.names, "seed"]).items() if part.dots else ():
        seeds[tuple(key)].append(100 * its.value)
    shown, dotted = varying_labels(rows), part.dots or part.against is not None
    colours = part.records.labels(part.colour) if part.colour else [None]
    beside = part.beside.estimates([*part.panels]) if part.beside else {}
    for panel in numbers.panels:
        blank = panel_row(part, panel) | {"liked": False}
        if panel in beside:
            found.append({"kind": "beside", **blank, "value": 100 * beside[panel].value})
        for row in rows:
            title = part.title([part.rows[k] for k in shown], [row[k] for k in shown])
            for colour in colours:
                key = (*panel, *row, *([] if colour is None else [colour]))
                line = blank | {"row": title, "colour": part.title([part.colour], [colour]) if part.colour else ""}
                found.append({"kind": "estimate", **line, **number_row(numbers, key, dotted)})
                several = seeds[key] if len(seeds[key]) > 1 and not part.against else ()
                found += [{"kind": "seed", **line, "value": value} for value in several]
    return pd.DataFrame(found)


def number_row(numbers: PartNumbers, key: Key, whole: bool = False) -> dict[str, Any]:
    """Return the columns of a number in percent, with the ends of its interval (`whole`) or of its deviation, and its
    text, or the sign for a missing one."""
    if (its := numbers.found.get(key)) is None:
        return {"value": None, "text": numbers.missing(key), "estimate": ""}
    spread = 0.0 if np.isnan(its.deviation) else its.deviation
    low, high = (its.low, its.high) if whole else (its.value - spread, its.value + spread)
    text = number_text(100 * its.value, 100 * its.deviation)
    return percents(its) | {"from": 100 * low, "to": 100 * high, "text": text, "liked": key in numbers.liked}


def draw_heat_map(part: HeatMap) -> DrawnFigure:
    """Draw accuracy (%) as squares: the last label of `panels` goes to the right, the others downwards."""
    numbers = PartNumbers(part, [*part.panels, *filter(None, [part.y, part.x])])
    down = list(dict.fromkeys(key[:-1] for key in numbers.panels))
    right, across, up = numbers.keys(part.panels[-1:]) or [()], side_values(part, part.x), side_values(part, part.y)
    rows = [
        {
            "down": heading(part, part.panels[:-1], line),
            "right": heading(part, part.panels[-1:], panel),
            "x": part.word(part.x, *x) if x else "",
            "y": part.word(part.y, *y) if y else "",
            **number_row(numbers, (*line, *panel, *y, *x)),
        }
        for line in down
        for panel in right
        for y in up
        for x in across
    ]
    frame = pd.DataFrame(rows)
    frame["text"] = frame["text"].str.replace(" ± ", "\n±")
    look = {
        "x": alt.X("x:N", sort=[*frame["x"].unique()], title=axis_name(part.x), axis=alt.Axis(labelAngle=0)),
        "y": alt.Y("y:N", sort=[*frame["y"].unique()][::-1], title=axis_name(part.y) if part.y else None),
    }
    scale = alt.Scale(scheme="viridis", domain=[0, 100])
    colour = alt.Color("value:Q", scale=scale, legend=alt.Legend(title=f"{ACCURACY}, chance in the middle"))
    ink = alt.condition("datum.value == null || datum.value > 60", alt.value("black"), alt.value("white"))
    text = alt.Chart().mark_text(fontSize=10, lineBreak="\n").encode(**look, text="text:N", color=ink)
    squares = alt.Chart().mark_rect().encode(**look, color=colour, tooltip=["x:N", "y:N", "estimate:N"])
    header = alt.Header(labelExpr="split(datum.label, '\\n')", labelAngle=0)
    sides = {"row": alt.Row("down:N", sort=[*frame["down"].unique()], header=header.copy())} if len(down) > 1 else {}
    if right != [()]:
        sides["column"] = alt.Column("right:N", sort=[*frame["right"].unique()], header=header)
    chart = alt.layer(squares, text, data=frame).properties(width=SQUARE * len(across), height=SQUARE * len(up))
    return DrawnFigure(chart.facet(**sides) if sides else chart, numbers)


def side_values(part: HeatMap, name: str) -> list[Key]:
    """Return the values of a side of a heat map, numbers in rising order; one empty value without a label."""
    values = part.records.labels(name) if name else []
    numbers = all(isinstance(value, int | float) for value in values)
    return [(value,) for value in (sorted(values) if numbers else values)] or [()]


DRAWN = {Lines: draw_lines, Bars: draw_bars, HeatMap: draw_heat_map, Front: draw_front}


def draw_figure(part: FigurePart) -> DrawnFigure:
    return next(draw(part) for kind, draw in DRAWN.items() if isinstance(part, kind))

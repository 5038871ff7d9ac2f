"""Draws the figures of a page as altair charts: lines, points, bars and heat maps, with a panel for each combination
of some labels."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from menagerie.studies.analysis.pareto import pareto_front
from menagerie.studies.analysis.tables import missing_sign, number_text
from menagerie.studies.analysis.words import CHANCES, TITLES, wrap
from menagerie.studies.frame.charts import DASHED, DOTTED, GREY, HEIGHT, WIDTH, panels
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.layout import (
    TESTS,
    Key,
    PartNumbers,
    keys,
    label_values,
    number_places,
    title,
    value_words,
    varying_labels,
)
from menagerie.studies.frame.parts import Bars, FigurePart, Front, HeatMap, Lines, RecordsPart

AXES = {"pairs": "animal pairs in training", "hard_negatives": "training pairs with hard negatives"}
ACCURACY = "accuracy (%)"
PALE = "A pale bar: the model prefers the same caption whatever the image, so the bar says nothing of binding."
ROW = 22  # pixels of a row, for each colour in it
SQUARE = 58
MOST_TOGETHER = 6  # colours in one panel of points
MOST_TICKS = 8  # values of a label that are all ticks


class DrawnFigure(NamedTuple):
    """A chart, and the numbers in it."""

    chart: alt.TopLevelMixin
    names: Sequence[str]
    """The names of the labels in the keys of `found`."""
    found: Mapping[Key, Estimate]
    note: str = ""
    """A sentence for the caption."""


def axis_name(name: str) -> str:
    return AXES.get(name, name.replace("_", " "))


def heading(part: RecordsPart, names: Sequence[str], key: Key) -> str:
    """Write the title of a panel: a line for each of its labels, except the task swap, which is the default."""
    said = [pair for pair in zip(names, key, strict=True) if pair != ("task", "swap")]
    known = {value: text for value, text in TITLES.items() if value not in part.words.get("subset", {})}
    texts = (known.get(value if name == "subset" else "") or title(part, [name], (value,)) for name, value in said)
    return "\n".join(wrap(text, 32) for text in texts)


def panel_chance(part: FigurePart, panel: Mapping[str, Any]) -> float:
    """Return chance in percent for a panel: that of its task, or of the only task of all records."""
    tasks = {*part.records.scores.task}
    task = panel.get("task", tasks.pop() if len(tasks) == 1 else "")
    return part.chances.get(task, CHANCES.get(task, 50.0))


def panels_of(part: FigurePart, found: Mapping[Key, Estimate]) -> list[Key]:
    """List the panels that have a number, in the order of tables; all panels if none has."""
    every = keys(number_places(part.records), part.panels) or [()]
    filled = {key[: len(part.panels)] for key in found}
    return [key for key in every if key in filled] or every


def panel_names(part: FigurePart, every: Sequence[Key]) -> list[str]:
    return [heading(part, part.panels, key) for key in every]


def percents(its: Estimate) -> dict[str, Any]:
    """Return an estimate's numbers in percent, and as a text."""
    return {"value": 100 * its.value, "low": 100 * its.low, "high": 100 * its.high, "estimate": str(its)}


def estimate_row(part: FigurePart, labels: Mapping[str, Any], its: Estimate) -> dict[str, Any]:
    """Return the columns of a chart's frame that all figures have, for an estimate with these labels."""
    panel = tuple(labels[name] for name in part.panels)
    chance = panel_chance(part, dict(zip(part.panels, panel, strict=True)))
    return {"kind": "estimate", "panel": heading(part, part.panels, panel), "chance": chance, **percents(its)}


def places_on_axis(part: Lines | Front, names: Sequence[str]) -> dict[Key, float]:
    """Return the mean of a measured column, the axis of the part, over the arms with the same labels."""
    column, found = getattr(part, "at", "") or part.x, defaultdict(list)
    for arm in part.records.arms:
        if arm.place.keys() >= {*names} and isinstance(value := arm.place.get(column), int | float):
            found[label_values(arm.place, names)].append(value)
    return {key: float(np.mean(values)) for key, values in found.items()}


def placed_frame(
    part: Lines | Front, names: Sequence[str], found: Mapping[Key, Estimate]
) -> tuple[pd.DataFrame, list[str]]:
    """Return a row for each estimate that has a place on the axis, and the names of all colours in order."""
    own = [name for name in names if name not in TESTS]
    given = part.x in names and not getattr(part, "at", "")
    where, stroke, rows = {} if given else places_on_axis(part, own), getattr(part, "stroke", ""), []
    for key, its in found.items():
        labels = dict(zip(names, key, strict=True))
        x = labels[part.x] if given else where.get(label_values(labels, own))
        if x is not None:
            words = {"colour": title(part, [part.colour], (labels[part.colour],))}
            words["stroke"] = title(part, [stroke], (labels[stroke],)) if stroke else ""
            said = value_words(part, part.x, x) if given else f"{x:,g}"
            rows.append(estimate_row(part, labels, its) | words | {"x": x, "at": said, "key": key})
    colours = [title(part, [part.colour], (value,)) for value in part.records.labels(part.colour)]
    frame = pd.DataFrame(rows, columns=None if rows else [*COLUMNS, "key"])
    if has_words(part):
        return frame.assign(x=frame["at"]), colours
    return frame.sort_values("x", kind="stable"), colours


COLUMNS = ["kind", "panel", "chance", "value", "low", "high", "estimate", "colour", "stroke", "x", "at"]


def has_words(part: Lines | Front) -> bool:
    """Whether the values along the axis are words."""
    values = part.records.labels(part.x) if isinstance(part, Lines) and not part.at else []
    return not all(isinstance(value, int | float) for value in values)


def x_axis(part: Lines | Front) -> alt.X:
    """Make the axis of `x`: words in the order of the plan, ticks at its values if these are few, else at round
    numbers."""
    name = getattr(part, "along", "") or axis_name(getattr(part, "at", "") or part.x)
    values = part.records.labels(part.x)
    if has_words(part):
        return alt.X(
            "x:N", title=name, sort=[value_words(part, part.x, v) for v in values], scale=alt.Scale(padding=0.3)
        )
    scale = alt.Scale(type="log" if part.log else "linear", zero=False, nice=False, padding=12)
    if isinstance(part, Lines) and not part.at and len(values) <= MOST_TICKS:
        texts = json.dumps({str(value): value_words(part, part.x, value) for value in values})
        axis = alt.Axis(values=values, labelExpr=f"{texts}[toString(datum.value)]", labelOverlap=True)
        return alt.X("x:Q", title=name, scale=scale, axis=axis)
    return alt.X("x:Q", title=name, scale=scale, axis=alt.Axis(format=",~g", tickCount=5, labelOverlap=True))


def of_kind(kind: str) -> alt.Chart:
    """Make a layer of the rows of one kind in the chart's frame."""
    return alt.Chart().transform_filter(alt.datum.kind == kind)


def chance_rule(**encoding: Any) -> alt.Chart:
    """Draw a dotted line at the chance of each panel."""
    return alt.Chart().mark_rule(strokeDash=DOTTED, color=GREY, size=1.5).encode(**encoding)


def level_rule(level: float | None) -> list[alt.Chart]:
    """Draw a dashed line at a share, if there is one."""
    if level is None:
        return []
    rule = alt.Chart().mark_rule(strokeDash=DASHED, color="#999")
    return [rule.encode(y=alt.YDatum(100 * level), tooltip=alt.value(f"{level:.0%}"))]


def draw_lines(part: Lines) -> DrawnFigure:
    """Draw a line for each colour and stroke, with the interval as a band."""
    names = list(dict.fromkeys([*part.panels, part.colour, *filter(None, [part.stroke]), part.x]))
    found = part.records.estimates(names)
    frame, colours = placed_frame(part, names, found)
    every = panels_of(part, found)
    beside, more = beside_rows(part)
    frame = pd.concat([frame.drop(columns="key"), beside.drop(columns="key", errors="ignore")], ignore_index=True)
    scale = alt.Scale(domain=[floor_of(frame), 101], nice=False)
    y, low = (alt.Y(f"{name}:Q", title=ACCURACY, scale=scale) for name in ("value", "low"))
    order = list(dict.fromkeys([*colours, *more]))
    colour, shape = alt.Color("colour:N", sort=order), alt.Shape("colour:N", sort=order, legend=None)
    look: dict[str, Any] = {"x": x_axis(part), "color": colour}
    dash = {}
    if part.stroke:
        dash["strokeDash"] = alt.StrokeDash(
            "stroke:N", legend=alt.Legend(symbolType="stroke", symbolStrokeColor="#333")
        )
    tips = ["colour:N", *(["stroke:N"] if part.stroke else []), alt.Tooltip("at:N", title=part.x), "estimate:N"]
    layers = [
        chance_rule(y=alt.Y("min(chance):Q", title=ACCURACY, scale=scale)),
        *level_rule(part.level),
        of_kind("estimate").mark_area(opacity=0.18).encode(**look, detail="stroke:N", y=low, y2="high:Q"),
        of_kind("estimate").mark_line(size=1.5).encode(**look, **dash, y=y),
        of_kind("estimate").mark_point(filled=True, size=40, opacity=1).encode(**look, y=y, shape=shape, tooltip=tips),
        of_kind("beside").mark_rule(strokeDash=DASHED).encode(color=colour, y=y, tooltip=["colour:N", "estimate:N"]),
    ]
    return DrawnFigure(panels(layers, frame, panel_names(part, every)), names, found)


def floor_of(frame: pd.DataFrame) -> float:
    """Return the lower end of an axis of accuracies: just below chance, and below all numbers."""
    return max(0.0, float(np.nanmin([*frame["low"], *frame["value"], *frame["chance"], 50.0])) - 2)


def beside_rows(part: Lines) -> tuple[pd.DataFrame, list[str]]:
    """Return a row for each estimate of the records `beside`, which have no `x`, and the names of their colours."""
    names = [*part.panels, part.colour]
    found = part.beside.estimates(names) if part.beside else {}
    rows = [
        estimate_row(part, dict(zip(names, key, strict=True)), its)
        | {"kind": "beside", "colour": title(part, [part.colour], key[-1:])}
        for key, its in found.items()
    ]
    return pd.DataFrame(rows, columns=None if rows else COLUMNS), [row["colour"] for row in rows]


def draw_front(part: Front) -> DrawnFigure:
    """Draw a ring for each setting, steps along the settings that no other beats, and points at how these do on the
    records `judged`. Without `panels`, each of many colours has its own panel."""
    names = list(dict.fromkeys([*part.panels, part.colour, *part.points]))
    found = part.records.estimates(names)
    frame, colours = placed_frame(part, names, found)
    every = panel_names(part, panels_of(part, found))
    if len(colours) > MOST_TOGETHER and not part.panels:
        frame["panel"], every = frame["colour"], colours
    judged = part.judged.estimates(names) if part.judged else {}
    fronts = frame.groupby(["panel", "colour"], sort=False)
    best = {its["key"].iloc[k] for _, its in fronts for k in pareto_front([*its["x"]], [*its["value"]])}
    frame["best"] = [key in best for key in frame["key"]]
    frame["judged"] = [100 * judged[key].value if key in judged else np.nan for key in frame["key"]]
    y = alt.Y("value:Q", title=ACCURACY, scale=alt.Scale(zero=False))
    look = {"x": x_axis(part), "color": alt.Color("colour:N", sort=colours)}
    dots = {"shape": alt.Shape("colour:N", sort=colours, legend=None), "tooltip": ["colour:N", "x:Q", "estimate:N"]}
    on_front = alt.Chart().transform_filter("datum.best")
    layers = [
        chance_rule(y=alt.Y("min(chance):Q", title=ACCURACY)),
        *level_rule(part.level),
        alt.Chart().mark_point(size=45).encode(**look, **dots, y=y),
        on_front.mark_line(interpolate="step-after", size=1.2).encode(**look, y=y),
        on_front.mark_point(filled=True, size=45, opacity=1).encode(
            **look, **dots, y=alt.Y("judged:Q", title=ACCURACY)
        ),
    ]
    note = "Rings: settings; steps: the best at their cost" + ("; points: these on the test." if judged else ".")
    return DrawnFigure(panels(layers, frame.drop(columns="key"), every, HEIGHT + 40, WIDTH + 60), names, found, note)


def draw_bars(part: Bars) -> DrawnFigure:
    """Draw a bar or a dot for each row and colour."""
    numbers = PartNumbers(part, [*part.panels, *part.rows, *filter(None, [part.colour])])
    rows, every = numbers.rows(part.rows), panels_of(part, numbers.found)
    frame, texts, colours = bar_frame(numbers, rows, every)
    dotted, signed = part.dots or part.against is not None, part.against is not None
    name = "percentage points" if signed else f"{ACCURACY}, dotted: chance"
    scale = alt.Scale(zero=signed, nice=False, padding=8) if dotted else alt.Scale(domain=[0, 100])
    x = alt.X("value:Q", title=name, scale=scale)
    look: dict[str, Any] = {"y": alt.Y("row:N", sort=texts, title=None)}
    if part.colour:
        colour = alt.Color("colour:N", sort=colours)
        look |= {"yOffset": alt.YOffset("colour:N", sort=colours), "color": colour}
    tips = ["row:N", *(["colour:N"] if part.colour else []), "estimate:N"]
    shown = of_kind("estimate")
    ends = {"x": alt.X("from:Q", title=name), "x2": "to:Q"}
    if dotted:
        spread = of_kind("seed").mark_point(filled=True, size=25, opacity=0.35).encode(**look, x=x)
        number = shown.mark_point(filled=True, size=50, opacity=1).encode(**look, x=x, tooltip=tips)
        layers = [spread, number, shown.mark_rule(size=1.5).encode(**look, **ends)]
    else:
        bar = shown.mark_bar().encode(
            **look, x=x, tooltip=tips, opacity=alt.condition("datum.liked", alt.value(0.35), alt.value(1))
        )
        spread = shown.mark_rule(color="#222").encode(**look | {"color": alt.value("#222")}, **ends)
        text = alt.Chart().transform_filter("datum.kind != 'seed'").mark_text(align="left", color="#222", fontSize=10)
        text = text.encode(**look | {"color": alt.value("#222")}, x=alt.value(WIDTH + 4), text="text:N")
        layers = [bar, spread, text]
    layers.append(alt.Chart().mark_rule(color=GREY).encode(x=alt.XDatum(0)) if signed else chance_of_bars())
    layers.append(of_kind("beside").mark_rule(strokeDash=DASHED, color="#999").encode(x=x))
    chart = panels(layers, frame, panel_names(part, every), ROW * len(rows) * max(1, len(colours)))
    pale = PALE if frame["liked"].any() and not dotted else ""
    return DrawnFigure(
        chart.properties(spacing={"row": 24, "column": 76}) if len(every) > 1 else chart,
        numbers.names,
        numbers.found,
        pale,
    )


def chance_of_bars() -> alt.Chart:
    return chance_rule(x=alt.X("min(chance):Q", title=f"{ACCURACY}, dotted: chance"))


def bar_frame(
    numbers: PartNumbers, rows: Sequence[Key], every: Sequence[Key]
) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Return a row for each number, also for missing ones, the single seeds of dots, and the means of `beside`; also
    the names of rows and colours in order."""
    part, shown = numbers.part, varying_labels(rows)
    names, seeds = [part.rows[k] for k in shown], seeds_of(numbers)
    of_row = {row: title(part, names, tuple(row[k] for k in shown)) for row in rows}
    colours = part.records.labels(part.colour) if part.colour else []
    words = {colour: title(part, [part.colour], (colour,)) for colour in colours}
    beside, found = part.beside.estimates([*part.panels]) if part.beside else {}, []
    for panel in every:
        labels = dict(zip(part.panels, panel, strict=True))
        blank = {"panel": heading(part, part.panels, panel), "chance": panel_chance(part, labels), "liked": False}
        if panel in beside:
            found.append({"kind": "beside", **blank, "value": 100 * beside[panel].value})
        for row in rows:
            for colour in colours or [None]:
                key = (*panel, *row, *([] if colour is None else [colour]))
                line = blank | {"row": of_row[row], "colour": words.get(colour, "")}
                found.append({"kind": "estimate", **line, **bar_numbers(numbers, key)})
                several = seeds.get(key, ()) if len(seeds.get(key, ())) > 1 else ()
                found += [{"kind": "seed", **line, "value": 100 * value} for value in several]
    return pd.DataFrame(found), list(dict.fromkeys(of_row.values())), list(words.values())


def bar_numbers(numbers: PartNumbers, key: Key) -> dict[str, Any]:
    """Return the columns of one number: with its interval as a dot, with its deviation over seeds as a bar."""
    its = numbers.found.get(key)
    if its is None:
        return {"value": None, "text": missing_sign(key not in numbers.awaited)}
    part, spread = numbers.part, 0.0 if np.isnan(its.deviation) else its.deviation
    ends = (its.low, its.high) if part.dots or part.against else (its.value - spread, its.value + spread)
    text = number_text(100 * its.value, 100 * its.deviation)
    shown = {"from": 100 * ends[0], "to": 100 * ends[1], "text": text, "liked": key in numbers.liked}
    return percents(its) | shown


def seeds_of(numbers: PartNumbers) -> dict[Key, list[float]]:
    """Return the accuracies of single seeds for each key, over all their records; empty if the part shows none."""
    part, scores = numbers.part, numbers.part.records.scores
    if not part.dots or numbers.against or not len(scores):
        return {}
    names = [*numbers.names]
    known = scores.dropna(subset="accuracy").assign(right=lambda row: row["accuracy"] * row["n"])
    pooled = known.groupby(list(dict.fromkeys([*names, "seed"])), sort=False)[["right", "n"]].sum()
    return {key: its.tolist() for key, its in (pooled["right"] / pooled["n"]).groupby(names, sort=False)}


def draw_heat_map(part: HeatMap) -> DrawnFigure:
    """Draw accuracy (%) as squares: the last label of `panels` goes to the right, the others downwards.

    A square without records shows a dash; one whose run isn't finished shows three dots.
    """
    numbers = PartNumbers(part, [*part.panels, *filter(None, [part.y, part.x])])
    found = numbers.found
    down = [key for key in numbers.keys(part.panels[:-1]) if any(k[: len(key)] == key for k in found)] or [()]
    right, across, up = numbers.keys(part.panels[-1:]) or [()], side_values(part, part.x), side_values(part, part.y)
    rows = [
        {
            "down": heading(part, part.panels[:-1], line),
            "right": heading(part, part.panels[-1:], panel),
            "x": value_words(part, part.x, *x) if x else "",
            "y": value_words(part, part.y, *y) if y else "",
            **square_numbers(numbers, (*line, *panel, *y, *x)),
        }
        for line in down
        for panel in right
        for y in up
        for x in across
    ]
    frame = pd.DataFrame(rows)
    look = {
        "x": alt.X("x:N", sort=[*frame["x"].unique()], title=axis_name(part.x), axis=alt.Axis(labelAngle=0)),
        "y": alt.Y("y:N", sort=[*frame["y"].unique()][::-1], title=axis_name(part.y) if part.y else None),
    }
    scale = alt.Scale(scheme="viridis", domain=[0, 100])
    colour = alt.Color("value:Q", scale=scale, legend=alt.Legend(title=f"{ACCURACY}, chance in the middle"))
    ink = alt.condition("datum.value == null || datum.value > 60", alt.value("black"), alt.value("white"))
    text = alt.Chart().mark_text(fontSize=10, lineBreak="\n").encode(**look, text="text:N", color=ink)
    squares = alt.Chart().mark_rect().encode(**look, color=colour, tooltip=["x:N", "y:N", "estimate:N"])
    size = {"width": SQUARE * len(across), "height": SQUARE * len(up)}
    header = alt.Header(labelExpr="split(datum.label, '\\n')", labelAngle=0)
    down_facet = alt.Row("down:N", sort=[*frame["down"].unique()], header=header.copy())
    right_facet = alt.Column("right:N", sort=[*frame["right"].unique()], header=header)
    sides = ({"row": down_facet} if len(down) > 1 else {}) | ({"column": right_facet} if right != [()] else {})
    chart = alt.layer(squares, text, data=frame).properties(**size)
    return DrawnFigure(chart.facet(**sides) if sides else chart, numbers.names, found)


def square_numbers(numbers: PartNumbers, key: Key) -> dict[str, Any]:
    """Return the columns of one square: its accuracy, and the deviation if there are several seeds."""
    its = numbers.found.get(key)
    if its is None:
        return {"value": None, "text": missing_sign(key not in numbers.awaited), "estimate": ""}
    deviation = "" if np.isnan(its.deviation) else f"\n±{100 * its.deviation:.1f}"
    return percents(its) | {"text": number_text(100 * its.value) + deviation}


def side_values(part: HeatMap, name: str) -> list[Key]:
    """Return the values of a side of a heat map, numbers in rising order; a side without a label has one empty
    value."""
    values = part.records.labels(name) if name else []
    numbers = all(isinstance(value, int | float) for value in values)
    return [(value,) for value in (sorted(values) if numbers else values)] or [()]

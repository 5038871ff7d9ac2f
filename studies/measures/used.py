"""Where models use the bit which animal has which texture, beside where it is present: the parts of a page, of the rows
of `Patching`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from menagerie.models.towers.features import STEM
from menagerie.studies.analysis.intervals import NOTHING, Estimate, mean_over_seeds
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.charts import COLOURS, GREY
from menagerie.studies.frame.parts import Chart, Heading, Part, Rows, Sentence
from menagerie.studies.measures.patching import (
    ALONE,
    HEAD,
    OBJECTS,
    PARTS,
    POOL,
    PRESENT,
    SHARE,
    ratio_over_pairs,
    unbound_reason,
)
from menagerie.studies.measures.probe_set import TEXT

SAYS = """Bars: the share of the choice between a scene's two captions that turns when a part's activations become those
of the swapped scene, or of its caption; ratios of means with 95 % intervals for new animal pairs and seeds. The shares
of a layer add up to 1. Diamonds: bits that a probe reads from the part. What is present needn't be used. At the stem,
and where scores read the last block, shares are settled by construction. They say where the difference lies, not where
animal and texture are joined."""
LISTS = ("moves", "wholes")
STEPS_SAY = """The same over training: shares of each block (lines, with 95 % intervals), and bits that a probe reads
(dashed). There is no share where the score doesn't tell a scene from its swap."""
ORDER = ("background", OBJECTS, "CLS", *PARTS[TEXT])
AT_POOL = "alone, at CLS or end"
HEADER = ("model", "step", "of", "layer", "part", "share", "alone", AT_POOL, "bits present")


def used_parts(
    rows: pd.DataFrame, names: Mapping[str, str], axes: Sequence[str] = (), lengths: Mapping[str, int] | None = None
) -> Iterator[Part]:
    """Yield sentences for models of which nothing can be located, a figure of the last step, and a table. Arguments are
    those of `bit_parts`."""
    if not len(rows):
        return
    yield Heading("Where the bit is used")
    steps = rows["step"].astype(float).fillna(rows["model"].map(lengths or {}))
    found = list(used_rows(rows.assign(step=steps, last=rows["step"].isna()), names, axes))
    last = [row for row in found if row["last"]]
    for model, why in dict.fromkeys((row["model"], row["refused"]) for row in last if row["refused"]):
        yield Sentence(f"{model}, where the bit is used: refused, {why}.")
    if shown := [chart_row(row) for row in last if row.get("part") in ORDER]:
        yield Chart("used", used_chart(pd.DataFrame(shown)), says=SAYS)
    if len(last) < len(found) and shown:
        over = [chart_row(row) | {"step": row["step"], "panel": panel_of(row)} for row in found if of_block(row)]
        yield Chart("used-over-training", used_lines(pd.DataFrame(over)), says=STEPS_SAY)
    for row in found:
        row["step"] = DASH if np.isnan(row["step"]) else f"{row['step']:g}"
    lines = [[str(row.get(name, DASH)) for name in HEADER] for row in found]
    yield Rows("used-by-part", HEADER, lines, folded="All parts, heads and steps")


def used_rows(rows: pd.DataFrame, names: Mapping[str, str], axes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each part of each layer at each step, with its share, what it moves alone, and the bits that are
    present, as estimates over seeds and animal pairs."""
    for (*place, model, step, side), its in rows.groupby([*axes, "model", "step", "side"], sort=False, dropna=False):
        said = "".join(f", {value:.0%} {name.replace('_', ' ')}" for name, value in zip(axes, place, strict=True))
        moved = its[its["moves"].map(len) > 0]
        why, wholes = its["refused"].iloc[0], stacked(moved.groupby("seed")["wholes"].first())
        if len(wholes) > 1:
            why = unbound_reason(wholes.reshape(-1), *np.indices(wholes.shape).reshape(2, -1))
        row = {"model": names[model] + said, "step": step, "of": side, "last": its["last"].iloc[0], "refused": why}
        if not len(moved):
            yield row | {"share": "refused"}
        for (layer, part), each in its[its["layer"] != ""].groupby(["layer", "part"], sort=False):
            kinds, line = dict(iter(each.groupby("kind"))), row | {"layer": layer, "part": part, "median": np.nan}
            for name, kind in (("share", SHARE), ("alone", ALONE), ("alone", HEAD), (AT_POOL, POOL)):
                if (found := kinds.get(kind)) is not None:
                    line[name] = "refused" if why else ratio_over_pairs(*(stacked(found[key]) for key in LISTS))
                    line["median"] = found["median"].astype(float).mean() if name == "share" else line["median"]
            if PRESENT in kinds:
                line["bits present"] = mean_over_seeds(list(kinds[PRESENT]["value"]))._replace(times=1, digits=2)
            yield line


def stacked(lists: pd.Series) -> Float[np.ndarray, "seeds pairs"]:
    return np.array([*lists], float, ndmin=2)  # also without rows


def chart_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a part in the figure."""
    both = (row.get(name) for name in ("share", "bits present"))
    share, present = (its if isinstance(its, Estimate) else NOTHING for its in both)
    panel = f"{row['model']}, {row['of']}s" + ", refused" * bool(row["refused"])
    at = {"panel": panel, "place": f"{row['layer']}: {row['part']}"}
    at |= {"layer": row["layer"], "part": row["part"]}
    numbers = {"share": share.value, "low": share.low, "high": share.high, "median": row["median"]}
    return at | numbers | {"present": present.value, "refused": row["refused"]}


def of_block(row: Mapping[str, Any]) -> bool:
    """Whether a row is of a part of a block; at the stem shares are settled by construction."""
    return row.get("part") in ORDER and row["layer"] != STEM


def panel_of(row: Mapping[str, Any]) -> str:
    return f"{row['model']}, {row['of']}s, {row['layer']}"


def used_lines(frame: pd.DataFrame) -> Any:
    """Return a chart with a panel for each block of each model: by step, the share of each part, and its bits."""
    import altair as alt

    colour = alt.Color("part:N", scale=alt.Scale(domain=ORDER, range=[GREY, *COLOURS]))
    base = alt.Chart(frame).encode(x="step:Q", color=colour, tooltip=list(frame))
    ends = base.mark_rule(opacity=0.4).encode(y=alt.Y("low:Q", title="share, or bits present"), y2="high:Q")
    lines = base.mark_line(point=True).encode(y="share:Q")
    present = base.mark_line(strokeDash=[4, 3]).encode(y="present:Q")
    panels = alt.layer(ends, lines, present, data=frame).properties(width=230, height=150)
    return panels.facet(alt.Facet("panel:N", sort=list(dict.fromkeys(frame["panel"])), title=None), columns=2)


def used_chart(frame: pd.DataFrame) -> Any:
    """Return a chart with two panels for each model, of images and of texts: a bar and a diamond for each part."""
    import altair as alt

    order = [f"{layer}: {part}" for layer in dict.fromkeys(frame["layer"]) for part in ORDER]
    base = alt.Chart(frame).encode(y=alt.Y("place:N", sort=order, title=None), tooltip=list(frame))
    colour = alt.Color("part:N", scale=alt.Scale(domain=ORDER, range=[GREY, *COLOURS]))
    bars = base.mark_bar().encode(x=alt.X("share:Q", title="share (bar), bits present (diamond)"), color=colour)
    ends = base.mark_rule().encode(x="low:Q", x2="high:Q")
    diamonds = base.mark_point(shape="diamond", filled=True, size=50, color="black").encode(x="present:Q")
    panels = alt.layer(bars, ends, diamonds, data=frame).properties(width=230)
    shown = alt.Facet("panel:N", sort=list(dict.fromkeys(frame["panel"])), title=None)
    return panels.facet(shown, columns=2).resolve_scale(y="independent")

"""The phase diagram as parts of a page: critical coverages in words, the map, its check, and budgets."""

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from menagerie.models.registry import short_name
from menagerie.studies.frame.parts import Chart, Heading, Part, Rows, Sentence
from menagerie.studies.measures.boundary import LINE, PLACE, Boundary, Diagram, Z, interpolated, rmse

ABOVE, BELOW, UNLEARNT, OPEN = (
    "above the line (95 %)",
    "below the line (95 %), though training's scenes are learnt",
    "below the line, and training's scenes aren't learnt",
    "undecided: the line's 95 % interval",
)
COLOURS = {ABOVE: "#7fb8e6", BELOW: "#f3b27a", UNLEARNT: "#bdbdbd", OPEN: "#ffffff"}
FORMS = {"clip": "pooled", "filip": "patches", "filip-phrases": "phrases", "oc-clip": "graph"}
WIDTH, HEIGHT = 400, 150
NEAR = 0.18  # farther than this in coverage from every run, areas are pale
STEPS = 201, 25  # of the areas, across and up
NOT_TESTABLE = "not testable (training's scenes aren't learnt)"


def phase_parts(diagram: Diagram, enough: float) -> Iterator[Part]:
    """Yield a diagram. `enough` is the least accuracy on training's own scenes with which they are learnt."""
    runs, is_held, number, fitted, checks = diagram
    limits = runs["coverage"].min(), runs["coverage"].max()
    yield from sentences(fitted.lines, limits, enough)
    if number:
        yield Sentence(check_text(checks, number))
    yield Chart("map", draw_map(fitted, runs, is_held, enough), says=MAP)
    header = ("form", "objects", "completeness", "critical coverage", "training's scenes", "learnt")
    yield Rows("critical", header, list(critical_rows(fitted.lines, limits, enough)), says=CRITICAL)
    yield Heading("Cells that were held out", noise_text(fitted))
    if len(checks):
        yield Rows("checks", CHECKS, list(check_rows(checks)))


def sentences(critical: pd.DataFrame, limits: tuple[float, float], enough: float) -> Iterator[Part]:
    """Yield each form's critical coverage with the most complete captions."""
    for form, part in critical.groupby("model", sort=False):
        best = part[part["completeness"] == part["completeness"].max()].sort_values("objects")
        found = ((row.objects, critical_text(row, limits, enough)) for row in best.itertuples())
        texts = [
            f"{'' if text == NOT_TESTABLE else 'coverage '}{text} with {objects} objects" for objects, text in found
        ]
        yield Sentence(f"{form_name(str(form))} is half-way from chance to 100 % per pair: {'; '.join(texts)}.")


def form_name(model: str) -> str:
    """Return what a form of the score compares, with its model's name; of other models the name alone."""
    return f"{FORMS[model]} ({model})" if model in FORMS else short_name(model)


def critical_text(row: Any, limits: tuple[float, float], enough: float) -> str:
    """Write a critical coverage with its interval; beyond the coverages that were trained only the side is known."""
    if row.learnt < enough:
        return NOT_TESTABLE
    low, high = limits
    values = (
        f"below {low:.2f}" if x < low else f"above {high:.2f}" if x > high else f"{x:.2f}"
        for x in (row.critical, row.low, row.high)
    )
    value, *bounds = values
    return f"{value} [{', '.join(bounds)}]"


def critical_rows(critical: pd.DataFrame, limits: tuple[float, float], enough: float) -> Iterator[tuple[str, ...]]:
    for row in critical.itertuples(index=False):
        place = form_name(row.model), str(row.objects), f"{row.completeness:g}"
        learnt = f"{100 * row.learnt:.0f}", "yes" if row.learnt >= enough else "no"
        yield *place, critical_text(row, limits, enough), *learnt


def check_text(checks: pd.DataFrame, number: int) -> str:
    """Say how well held-out cells were predicted, what coverage alone predicts, and how many of the `number` of cells
    are lacking."""
    lacking = f"{number - len(checks)} held-out cells have no result, or no fitted run of their form and objects."
    if not len(checks):
        return lacking
    width = 100 * (checks["high"] - checks["low"]).mean()
    errors = [100 * rmse(checks[name], checks["measured"]) for name in ("predicted", "only_coverage")]
    return (
        f"{checks['inside'].sum()} of {len(checks)} cells that were never fitted lie in their 95 % intervals, which "
        f"are {width:.0f} points wide on average. The error (RMSE) is {errors[0]:.1f} points; coverage alone has "
        f"{errors[1]:.1f}." + f" {lacking}" * (len(checks) < number)
    )


def check_rows(checks: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    for row in checks.itertuples(index=False):
        place = form_name(row.model), str(row.objects), f"{row.coverage:g}", f"{row.completeness:g}", str(row.seeds)
        interval = f"{100 * row.predicted:.0f} [{100 * row.low:.0f}, {100 * row.high:.0f}]"
        yield (
            *place,
            f"{100 * row.measured:.0f}",
            interval,
            "yes" if row.inside else "no",
            f"{100 * row.only_coverage:.0f}",
        )


def noise_text(fitted: Boundary) -> str:
    """Say by how much seeds, and cells beyond seeds, deviate from the curve at the line."""
    seed, cell = 50 * np.sqrt(fitted.seed_variance(LINE, 1)), 50 * np.sqrt(fitted.fit[2])
    return (
        f"Drawn before any run, and never fitted. Intervals are of the mean of the cell's seeds: they have the curve's "
        f"own error, the deviation between seeds (at the line {seed:.1f} points of accuracy per pair) and that "
        f"of cells from the curve beyond it ({cell:.1f})."
    )


def draw_map(fitted: Boundary, runs: pd.DataFrame, is_held: np.ndarray, enough: float) -> alt.TopLevelMixin:
    """Draw a row of panels for each form and a column for each number of objects."""
    lines = fitted.runs[["model", "objects"]].drop_duplicates()
    low, high = runs["coverage"].min() - 0.03, runs["coverage"].max() + 0.03
    bottom, top = runs["completeness"].min() - 0.08, runs["completeness"].max() + 0.08
    across, up = np.linspace(low, high, STEPS[0]), np.linspace(bottom, top, STEPS[1])
    parts = [panel_rows(fitted, form, objects, across, up, enough) for form, objects in lines.itertuples(index=False)]
    frame = pd.concat([*parts, number_rows(runs, is_held)], ignore_index=True)
    frame["column"] = [f"{objects} objects" for objects in frame["objects"]]
    frame["row"] = frame["model"].map(form_name)
    x = {"scale": alt.Scale(domain=[low, high], nice=False), "title": "coverage: share of compositions in training"}
    y = {"scale": alt.Scale(domain=[bottom, top], nice=False), "title": "completeness of captions"}
    ticks = alt.Axis(values=sorted(runs["completeness"].unique()), format="~g", grid=False)
    x, y = alt.X("x:Q", axis=alt.Axis(format="~g", grid=False), **x), alt.Y("y:Q", axis=ticks, **y)
    layers = alt.layer(*map_layers(x, y), data=frame).properties(width=WIDTH, height=HEIGHT)
    sides = {name: alt.Facet(f"{name}:N", sort=[*frame[name].unique()], title=None) for name in ("row", "column")}
    return layers.facet(row=alt.Row(**sides["row"].to_dict()), column=alt.Column(**sides["column"].to_dict()))


def panel_rows(
    fitted: Boundary, form: str, objects: int, across: np.ndarray, up: np.ndarray, enough: float
) -> pd.DataFrame:
    """Return the areas of a panel, as rectangles, and the points of its critical line."""
    level, share = (grid.ravel() for grid in np.meshgrid(up, across, indexing="ij"))
    cells = pd.DataFrame({"model": form, "objects": objects, "coverage": share, "completeness": level})
    known = fitted.cells[(fitted.cells["model"] == form) & (fitted.cells["objects"] == objects)]
    cells = cells.assign(area=area_kinds(fitted, cells, enough), pale=far_from_runs(known, cells))
    areas = [row for _, of_level in cells.groupby("completeness") for row in rectangles(of_level, up[1] - up[0])]
    found = fitted.critical(cells[cells["coverage"] == across[0]])
    found = found[found["critical"].between(across[0], across[-1])]
    line = pd.DataFrame({"kind": "line", "x": found["critical"], "y": found["completeness"]})
    return pd.concat([pd.DataFrame(areas), line], ignore_index=True).assign(model=form, objects=objects)


def rectangles(cells: pd.DataFrame, step: float) -> Iterator[dict[str, Any]]:
    """Yield a rectangle for each stretch of one area in a row of cells."""
    level, across = cells["completeness"].iloc[0], cells["coverage"].to_numpy()
    sides = {"y": level - 0.55 * step, "y2": level + 0.55 * step}  # they overlap, which hides seams
    kinds = cells[["area", "pale"]]
    starts = np.flatnonzero((kinds != kinds.shift()).any(axis=1))
    for start, end in zip(starts, [*starts[1:], len(cells) - 1], strict=True):
        place = {"x": across[start], "x2": across[end], **sides}
        yield {"kind": "area", "area": kinds["area"].iloc[start], "pale": bool(kinds["pale"].iloc[start]), **place}


def area_kinds(fitted: Boundary, cells: pd.DataFrame, enough: float) -> np.ndarray:
    """Return the area of each cell: on which side of the line the mean of its runs is, if that is known."""
    mean, deviation = fitted.curve(cells)
    learnt = interpolated(fitted.runs, "learnt", cells) >= enough
    below = np.where(learnt, BELOW, UNLEARNT)
    high, low = mean + Z * deviation, mean - Z * deviation
    return np.where(low > LINE, ABOVE, np.where(high < LINE, below, OPEN))


def far_from_runs(known: pd.DataFrame, cells: pd.DataFrame) -> np.ndarray:
    """Whether no fitted cell with about the same captions has about the same coverage."""
    levels = np.sort(known["completeness"].unique())
    completeness = cells["completeness"].to_numpy()[:, None]
    same = np.abs(levels - completeness).argmin(1)
    near = np.abs(known["coverage"].to_numpy() - cells["coverage"].to_numpy()[:, None]) <= NEAR
    return ~(near & (known["completeness"].to_numpy() == levels[same][:, None])).any(1)


def number_rows(runs: pd.DataFrame, is_held: np.ndarray) -> pd.DataFrame:
    """Return a row for each cell: its mean accuracy as a text, its number of seeds, and whether it was held out."""
    cells = (
        runs.assign(held=is_held).groupby([*PLACE, "held"], sort=False)["unseen"].agg(["mean", "size"]).reset_index()
    )
    text = [f"{100 * value:.0f}" for value in cells["mean"]]
    return cells.assign(kind="number", text=text, seeds=cells["size"], x=cells["coverage"], y=cells["completeness"])


def map_layers(x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Return the layers of a panel: areas, the line, boxes of held-out cells, and numbers."""

    def only(condition: str) -> alt.Chart:
        return alt.Chart().transform_filter(condition)

    scale = alt.Scale(domain=[*COLOURS], range=[*COLOURS.values()])
    legend = alt.Legend(columns=1, symbolType="square", symbolStrokeColor="#999", symbolSize=160)
    colour = alt.Color("area:N", scale=scale, legend=legend)
    fade = alt.condition("datum.pale", alt.value(0.3), alt.value(1))
    areas = only("datum.kind == 'area'").mark_rect(strokeWidth=0)
    line = only("datum.kind == 'line'").mark_line(color="black", size=2).encode(x, y, order="y:Q")
    numbers = only("datum.kind == 'number'")
    tips = ["row:N", "objects:Q", "coverage:Q", "completeness:Q", "text:N", "seeds:Q"]
    halo = numbers.mark_text(fontSize=10, stroke="white", strokeWidth=3, strokeJoin="round").encode(x, y, text="text:N")
    shown = {"text": "text:N", "tooltip": tips}
    one = numbers.transform_filter("datum.seeds == 1").mark_text(fontSize=10).encode(x, y, **shown)
    several = (
        numbers.transform_filter("datum.seeds > 1").mark_text(fontSize=10, fontWeight="bold").encode(x, y, **shown)
    )
    held = numbers.transform_filter("datum.held").mark_point(shape="square", size=280, color="black", strokeWidth=1)
    boxes = held.encode(x, y)
    return [areas.encode(x, y, x2="x2:Q", y2="y2:Q", color=colour, opacity=fade), line, halo, boxes, one, several]


def cell_parts(runs: pd.DataFrame) -> Iterator[Part]:
    """Yield a table of the cells: means over their seeds."""
    columns = ["learnt", "seen", "unseen"]
    cells = runs.groupby([*PLACE, "steps"], sort=False)[columns].mean()
    seeds = runs.groupby([*PLACE, "steps"], sort=False).size()
    rows = [
        (form_name(key[0]), *(f"{value:g}" for value in key[1:]), str(number), *(f"{100 * x:.1f}" for x in means))
        for key, number, means in zip(cells.index, seeds, cells.to_numpy(), strict=True)
    ]
    header = ("form", *PLACE[1:], "steps", "seeds", "training's scenes", "seen", "unseen")
    yield Heading("All cells")
    yield Rows("cells", header, rows, says=CELLS)


def trial_parts(runs: pd.DataFrame, enough: float) -> Iterator[Part]:
    """Yield for each form the fewest steps after which it has learnt training's scenes wherever it was tried."""
    least = runs.groupby(["model", "steps"], sort=False)["learnt"].min().reset_index()
    for form, part in least.groupby("model", sort=False):
        done = part[part["learnt"] >= enough]["steps"]
        best = part.loc[part["learnt"].idxmax()]
        says = f"learns its training's scenes in {done.min()} steps" if len(done) else "doesn't learn them yet"
        yield Sentence(f"{form_name(str(form))} {says}; it has {100 * best.learnt:.0f} % after {best.steps:.0f}.")


MAP = """Accuracy (%) per pair of objects, in compositions that training never showed: that on the textures of all n
objects of a scene to the power 2 / n, so that chance is 50 and the line 75 whatever their number. Numbers are measured:
means of seeds (bold) or single runs; boxes were never fitted. Black: the critical coverage, where a form is at the
line; white around it: its 95 % interval. Pale: no fitted run is near."""
CRITICAL = """The coverage at which accuracy per pair is half-way between chance and 100 %, with its 95 % interval;
beyond the trained coverages only the side is told. Training's scenes: accuracy (%) on swaps of them in new views. The
file has numbers: inf where no coverage is enough, -inf where any is."""
CELLS = """Accuracy (%), mean over seeds. Training's scenes: swaps of scenes as training shows them, in new views. Seen,
unseen: per pair of objects, in compositions that training shows, and in others."""
CHECKS = ("form", "objects", "coverage", "completeness", "seeds", "measured", "predicted", "inside", "coverage alone")

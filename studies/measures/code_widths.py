"""Smallest widths of codes that order everything: tables, a figure, and the claims that they decide."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from menagerie.studies.analysis.tables import DASH, WAITING
from menagerie.studies.frame.records import Records

if TYPE_CHECKING:
    import pandas as pd


def table_of_fits(records: Records) -> "pd.DataFrame":
    """Return a row for each fit: its labels, the percent of captions and images (the lower of both) whose true partners
    are all above the false ones, the least margin at a scale of 100, and percent of swaps and of what was left out."""
    import pandas as pd

    rows = []
    for arm, result in records.results:
        fitted, unseen = result["subsets"]["fitted"], result["subsets"].get("unseen", {})
        sides = fitted["captions"], fitted["images"]
        row = {"form": arm.cell.form, "seed": arm.cell.seed, **arm.labels, "swaps": percent(fitted["swaps"])}
        row |= {"right": min(map(percent, sides)), "margin": min(its["margin"] for its in sides)}
        rows.append(row | {f"unseen {name}": percent(unseen.get(name)) for name in ("captions", "images", "swaps")})
    return pd.DataFrame(rows)


def percent(numbers: dict[str, float | None] | None) -> float:
    share = numbers["accuracy"] if numbers else None
    return float("nan") if share is None else 100 * share


def smallest_widths(fits: "pd.DataFrame", largest: int) -> "pd.DataFrame":
    """Return a row of texts for each world, loss and form: the first width that orders everything, the first that has
    all swaps right, and the numbers of the former, as means and ranges over seeds."""
    import pandas as pd

    rows = []
    for key, part in fits.groupby(list(KEY), sort=False):
        ends = part.sort_values("width").groupby("seed").tail(1)
        done = ends[(ends["right"] == 100) | (ends["width"] == largest)]
        ordered, right = done[done["right"] == 100], part[(part["swaps"] == 100) & part["seed"].isin(done["seed"])]
        numbers = {name: span_text(ordered[name]) for name in ("margin", *(n for n in fits if n.startswith("unseen")))}
        counts = {"seeds": f"{len(ordered)} of {len(done)}", "width": width_text(ordered["width"], len(done), largest)}
        counts |= {"swaps from width": width_text(right.groupby("seed")["width"].min(), len(done), largest)}
        rows.append(dict(zip(KEY, key, strict=True)) | counts | numbers)
    return pd.DataFrame(rows)


def widths_by_form(found: "pd.DataFrame") -> "pd.DataFrame":
    """Return the smallest widths as texts, with a row for each world and a column for each form and loss."""
    codes = code_names(found)
    if found["loss"].nunique() > 1:
        codes = codes + ", " + found["loss"]
    world = ["captions", "objects", "animals"]
    wide = found.assign(code=codes).pivot_table("width", world, "code", "first", sort=False)
    return wide.fillna(WAITING).reset_index().astype(str)  # of worlds that some codes haven't reached yet


def code_names(frame: "pd.DataFrame") -> "pd.Series":
    return frame["form"].where(frame["tokens"] == 1, frame["tokens"].astype(str) + " tokens")


def width_text(widths: "pd.Series", seeds: int, largest: int) -> str:
    """Write the first widths of some seeds, such as "6", "6 to 8" or, where not all seeds have one, "> 24"."""
    if not seeds:
        return WAITING
    ends = [str(widths.min())] if len(widths) else []
    ends += [f"> {largest}"] if len(widths) < seeds else [str(widths.max())]
    return " to ".join(dict.fromkeys(ends))


def span_text(values: "pd.Series") -> str:
    """Write the mean of a number over seeds and, if it varies, its range."""
    if not len(known := values.dropna()):
        return DASH
    low, high = known.min(), known.max()
    return f"{known.mean():.3g}" + f" ({low:.3g} to {high:.3g})" * (f"{low:.3g}" != f"{high:.3g}")


def width_chart(fits: "pd.DataFrame") -> Any:
    """Return a chart of the percent that is ordered by width: a column for each number of objects, a row for each kind
    of captions, a line for each form and seed."""
    import altair as alt

    frame = fits.assign(form=code_names(fits), objects=fits["objects"].astype(str) + " objects")
    ticks = alt.Axis(values=sorted(map(int, frame["width"].unique())))
    x = alt.X("width:Q", scale=alt.Scale(type="log", base=2, nice=False), axis=ticks, title="width")
    y = alt.Y("right:Q", title="ordered (%)", scale=alt.Scale(domain=[0, 100]))
    base = alt.Chart(frame).encode(x, y, alt.Color("form:N", sort=None, title=None), alt.Detail("seed:N"))
    marks = base.mark_line(opacity=0.5), base.mark_point(size=14).encode(tooltip=list(frame))
    layers = alt.layer(*marks).properties(width=190, height=130)
    kinds = list(frame["captions"].unique())
    return layers.facet(row=alt.Row("captions:N", sort=kinds, title=None), column=alt.Column("objects:N", title=None))


def claim_rows(found: "pd.DataFrame", seeds: int, objects: int) -> Iterator[tuple[str, ...]]:
    """Yield each claim of Kang et al. 2025 that fits decide: one code that orders everything contradicts that there is
    none, if by one of the losses each of the `seeds` found one for each of so many numbers of `objects`."""
    for claim, form, kind in CLAIMED:
        part = found[(found["form"] == form) & (found["captions"] == kind)]
        widths = "; ".join(f"{row.objects} objects, {row.loss}: {row.width}" for row in part.itertuples())
        losses = [its["seeds"].tolist() for _, its in part.groupby("loss")]
        ended = [len(its) == objects and all(text.endswith(f" of {seeds}") for text in its) for its in losses]
        decided = "undecided" if losses and all(ended) else "not tested"
        if [f"{seeds} of {seeds}"] * objects in losses:
            decided = "contradicted"
        yield claim, f"{form}, {kind}", widths or DASH, decided


KEY = ("captions", "objects", "animals", "loss", "form", "tokens")
CLAIMED = (
    ("No vectors with cosines say both what an image shows and which attribute is whose", "vector", "objects"),
    ("No such vectors say both what an image shows and where it is", "vector", "relations"),
    ("No such vectors say both what an image shows and what it doesn't", "vector", "negation"),
    ("No such vectors say all of these at once", "vector", "all"),
    ("A vector that is a sum over objects doesn't say which attribute is whose", "sum", "objects"),
)

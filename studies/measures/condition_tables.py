"""Tables of the conditions on an ideal CLIP: how often each model meets each, why some have no number, claims on them,
and what binding costs in categorisation."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from menagerie.studies.analysis.estimate import Estimate, mean_over_seeds
from menagerie.studies.analysis.words import one_line
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import judge_difference
from menagerie.studies.frame.parts import Chart, Facts, Heading, Part, Rows, Sentence
from menagerie.studies.measures.conditions import (
    BINDING,
    CATEGORISATION,
    CONDITIONS,
    EVERY,
    INDEPENDENT,
    OTHER_ATTRIBUTES,
    OTHER_VIEW,
)
from menagerie.studies.measures.ideal import IdealEmbedding, least_margins, pair_margins
from menagerie.studies.measures.measured import model_table
from menagerie.studies.measures.predictors import PLACE, correlation_outcome
from menagerie.studies.measures.ranks import correlation

WEIGHTS = (0.0, 0.1, 0.3, 0.5, 1.0, 2.0)
MARKED = (0.0, 0.3, 0.5, 1.0, 2.0)  # beside the curve, where 0.1 would cover 0
CURVE = [0.05 * k for k in range(61)]
BOTH = [CATEGORISATION, BINDING]
MARGIN, SHARE = "margin of images", "share of scenes"
PARTS_BY = {"scores": "Their parts, by scores", "embeddings": "Between images, and between texts: by embeddings"}
SAYS = """Percent of scenes in which all parts of a condition hold, with 95 % intervals over seeds. Chance is the share
for scores in random order. The conditions are those of Kang et al. 2025 for images of two objects, with captions worded
as in training. All: every condition for which a model's captions have words holds. If independent: the product of their
shares. All models are compared at one setting of the grid."""
TRADE_OFF = """As inequalities the conditions don't contradict one another: a constructed embedding meets all. But the
embedding that is best for categorisation is the sum of its concepts, which doesn't bind."""
CURVE_SAYS = """Left: margins between embeddings of images, in cosines. To the right: by how much an image is nearer to
its swap than to an image of another object. Upwards: by how much it is nearer to another view of itself than to its
swap. A dot is a training run of a scorer with one vector, averaged over scenes. The curve is the constructed embedding;
the number at a point is its weight of conjunctions. Right: share of scenes in which each condition holds, by scores of
images with texts. A dot is a training run of any scorer; dashed: chance."""
CONSTRUCTED = """The least margin of each condition over all scenes; where it is above 0 the condition holds everywhere.
Embeddings are unit vectors of object + attribute + weight (object with attribute) + weight (object with place), of 6
objects and 4 attributes."""
CLAIMS = """The first verdict is a proof by example and needs no records. Paper and study differ in models, images and
sizes. Our models are trained from scratch for a fixed number of steps, which may end before curves are flat."""


def at_place(rows: pd.DataFrame, place: Mapping[str, Any], by: str = "scores") -> pd.DataFrame:
    """Return the shares of scenes in which conditions hold, at one place of the grid."""
    kept = (rows["measure"] == "holds") & (rows["by"] == by)
    for name, value in place.items():
        kept &= rows[name] == value
    return rows[kept]


def condition_parts(rows: pd.DataFrame, place: Mapping[str, Any]) -> Iterator[Part]:
    """Yield tables of how often models meet each condition, at the place where all are compared."""
    yield Heading("The conditions", one_line(SAYS))
    held = at_place(rows, place)
    whole = held[held["part"].isin((EVERY, INDEPENDENT))]
    names = whole["condition"].where(whole["part"] == EVERY, INDEPENDENT)
    yield model_table("conditions-by-model", whole.assign(condition=names), ("condition",))
    refused = held[held["value"].isna()].groupby(["condition", "refused"], sort=False)["model"].unique()
    if len(refused):
        models = {key: ", ".join(map(title_of, its)) for key, its in refused.items()}
        yield Facts({f"{name} is refused for {models[name, why]}": why for name, why in models})
    for by, title in PARTS_BY.items():
        its = at_place(rows, place, by)
        if len(its := its[~its["part"].isin((EVERY, INDEPENDENT))]):
            yield model_table(f"parts-{by}", its, ("condition", "part"), folded=title)


def trade_off_parts(rows: pd.DataFrame, place: Mapping[str, Any]) -> Iterator[Part]:
    """Yield whether models that categorise better bind worse: a sentence, a figure, the constructed embedding, and the
    table of claims."""
    correlated = traded(rows)
    yield Heading("Does binding cost categorisation?", one_line(TRADE_OFF))
    yield Sentence(
        "Do models that categorise better bind worse? Rank correlation of categorisation and attribute binding over "
        f"all training runs: {correlated}."
    )
    yield Chart("trade-off", trade_off_chart(rows), says=one_line(CURVE_SAYS))
    columns = [least_margins(IdealEmbedding(weight)) for weight in WEIGHTS]
    lines = [(name, *(f"{its[name]:.3f}" for its in columns)) for name in columns[0]]
    header = ("least margin", *(f"weight {weight:g}" for weight in WEIGHTS))
    yield Rows("constructed", header, lines, says=one_line(CONSTRUCTED))
    yield Heading("What the paper says, here", one_line(CLAIMS))
    found = verdicts(at_place(rows, place), correlated)
    yield Rows("claims", ("claim", "of", "measured", "outcome"), list(found))


def traded(rows: pd.DataFrame) -> Estimate:
    """Return the rank correlation of categorisation and binding. A model's cells of a seed are drawn together."""
    cells = by_cell(rows, "scores", "holds", (EVERY,))
    runs = list(zip(cells["model"], cells["seed"], strict=True))
    return correlation(*(cells[name].to_numpy(float) for name in BOTH), runs)


def by_cell(rows: pd.DataFrame, by: str, measure: str, parts: tuple[str, ...]) -> pd.DataFrame:
    """Return a row for each cell, with its numbers of categorisation and of attribute binding."""
    rows = rows[(rows["measure"] == measure) & (rows["by"] == by) & rows["condition"].isin(BOTH)]
    labels = ["model", "seed", *(name for name in PLACE if name in rows)]
    chosen = rows[rows["part"].isin(parts)].dropna(subset="value")
    wide = chosen.pivot_table("value", labels, "condition", sort=False).reset_index()
    return wide.rename_axis(columns=None).reindex(columns=[*labels, *BOTH])


def trade_off_frame(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the points of the figure: constructed embeddings by weight, chance, and cells."""
    points = [(weight, *pair_margins(IdealEmbedding(weight))) for weight in CURVE]
    ideal = (
        pd.DataFrame(points, columns=["weight", *BOTH]).round({"weight": 2}).assign(panel=MARGIN, model="constructed")
    )
    whole = rows[(rows["part"] == EVERY) & (rows["by"] == "scores")]
    chance = whole.groupby("condition")["chance"].mean().reindex(BOTH).to_frame().T.assign(panel=SHARE, model="chance")
    cells = [
        by_cell(rows, "embeddings", "margin", (OTHER_ATTRIBUTES, OTHER_VIEW)).assign(panel=MARGIN),
        by_cell(rows, "scores", "holds", (EVERY,)).assign(panel=SHARE),
    ]
    named = [its.assign(model=its["model"].map(title_of)) for its in cells]
    return pd.concat([ideal, chance, *named], ignore_index=True)


def trade_off_chart(rows: pd.DataFrame) -> Any:
    """Return a chart with categorisation along x and attribute binding along y: of margins, and of shares of scenes."""
    import altair as alt

    frame = trade_off_frame(rows)
    x, y = (alt.X(f"{CATEGORISATION}:Q"), alt.Y(f"{BINDING}:Q"))
    ideal, chance = (alt.Chart(frame).transform_filter(alt.datum.model == name) for name in ("constructed", "chance"))
    marked = ideal.transform_filter(alt.FieldOneOfPredicate("weight", list(MARKED)))
    cells = alt.Chart(frame).transform_filter("datum.model != 'constructed' && datum.model != 'chance'")
    layers = (
        ideal.mark_line(color="#666").encode(x=x, y=y, order="weight:Q"),
        marked.mark_text(align="left", dx=4, fontSize=9).encode(x=x, y=y, text="weight:Q"),
        chance.mark_rule(strokeDash=[2, 3]).encode(x=x),
        chance.mark_rule(strokeDash=[2, 3]).encode(y=y),
        cells.mark_circle(size=45).encode(x=x, y=y, color=alt.Color("model:N", title=None), tooltip=list(frame)),
    )
    panels = alt.layer(*layers, data=frame).properties(width=280, height=240)
    return panels.facet(alt.Column("panel:N", title=None)).resolve_scale(x="independent", y="independent")


def verdicts(held: pd.DataFrame, correlated: Estimate) -> Iterator[tuple[str, str, str, str]]:
    """Yield verdicts on the claims of Kang et al. for which there are runs: claim, of what, number, outcome. `held` are
    shares of scenes at one place, `correlated` is the correlation of categorisation and binding."""
    least = min(least_margins(IdealEmbedding(1.0)).values())
    yield (
        "No space of embeddings with cosines as scores meets all conditions at once",
        "constructed embedding, weight 1: least margin of all",
        *(f"{least:+.2f}, exact", "contradicted" if least > 0 else "confirmed"),
    )
    yield (
        "What is best for categorisation can't bind: models that categorise better bind worse",
        *(
            "all runs: rank correlation, expected below 0",
            str(correlated),
            correlation_outcome(correlated, -1, correlated.p),
        ),
    )
    for name in CONDITIONS[1:]:
        if gap := model_gap(held, "dcsm", "clip", name):
            yield (
                "Similarity maps of all patches and words (DCSM) meet the condition more often than CLIP does",
                *(f"DCSM − CLIP, {name}: points", str(gap), judge_difference(gap, 1)),
            )


def model_gap(rows: pd.DataFrame, model: str, base: str, condition: str) -> Estimate | None:
    """Return how far a model's share of scenes is above another's, over common seeds; None without any."""
    rows = rows[(rows["condition"] == condition) & (rows["part"] == EVERY)].dropna(subset="value")
    one, other = (rows[rows["model"] == name].set_index("seed")["value"] for name in (model, base))
    gaps = (one - other).dropna()
    return mean_over_seeds(list(gaps), -1.0)._replace(signed=True) if len(gaps) else None

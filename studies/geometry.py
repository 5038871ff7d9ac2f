"""The geometry of embeddings: does it predict which cells bind unseen pairs, and which conditions on an ideal CLIP
hold?

A measure that depends on no image and no accuracy was chosen beforehand: the binding share of text embeddings. Models
are trained at many places of a binding grid. On cells that weren't used to choose the measure, its rank correlation
with accuracy on unseen pairs is tested, besides those of three others. Also tested are the conditions of Kang et al.
2025 (Is CLIP ideal?): in which share of scenes do they hold, one by one and together?

    python studies/geometry.py --preset smoke      # tiny, under 90 seconds on 2 cores
    python studies/geometry.py                     # laptop: 8 animals, 32 px, three seeds
    python studies/geometry.py --preset spatial    # captions with relations: the condition on places
    python studies/geometry.py --preset coverage   # sums, products and linear factors by coverage of compositions
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, WHAT
from menagerie.envs.core.validation import SHARE, Several
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.templates import template_of
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.probe import ProbeRecipe, choose_names
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import judge_difference
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import APART, BREADTH, LEARNS, SMOKE
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.parts import Chart, Facts, Heading, Paragraph, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import AnyStudy
from menagerie.studies.probes import ProbeStudy
from menagerie.studies.runs.data import FRACTIONS

if TYPE_CHECKING:
    import pandas as pd

    from menagerie.studies.measures.conditions import Conditions
    from menagerie.studies.measures.geometry import EmbeddingGeometry
    from menagerie.studies.measures.probe_set import ProbeMeasure

FEWEST = 4  # animals of a probe set: two of each scene, and two that are absent


@dataclass(frozen=True)
class Geometry(ProbeStudy):
    """The geometry of embeddings: what it predicts, and which conditions hold"""

    pairs: Annotated[Axis[float], SHARE] = (0.2, 0.8)
    """Fractions of the trainable animal pairs."""
    hard_negatives: Annotated[Axis[float], SHARE] = (0.0, 1.0)
    """Fractions of these pairs that have hard negatives too."""
    coverage: Annotated[Axis[float], SHARE] = (1.0,)
    """Shares of the combinations of animal and texture that training shows."""
    once: Annotated[tuple[str, ...], WHAT, GROWS, Several()] = ()
    """Models among --models that are trained only at the first place, to test the conditions."""
    negated: Annotated[float, DATA, SHARE] = 0.0
    """Probability that a training caption also negates an absent object. All models get such runs at the first place,
    beside the grid; 0: no such runs, and no results on negation."""

    def check_given(self, preset: AnyStudy) -> None:
        odd = [name for name in self.once if name not in self.models]
        if odd and self.once != getattr(preset, "once", ()):
            raise UserError(f"--once {odd[0]} is not among --models; add it there, or leave it out")

    def check(self) -> None:
        """Raise for a probe set with too few animals or textures, and for `negated` if captions can't have negation."""
        super().check()
        if len(found := choose_names(self.probe_set, load_world(self.world))[0]) < FEWEST:
            raise UserError(
                f"a probe set needs {FEWEST} animals, because conditions compare two animals with two absent ones; it "
                f"has {len(found)}: {', '.join(found)}"
            )
        if self.negated and not any(item.name == "negated" for item in fields(self.recipe_given)):
            raise UserError(f"--negated: captions of {self.kind} splits have no negation; leave it out")

    @property
    def probe_set(self) -> ProbeRecipe:
        """The scenes on which embeddings are measured. Their captions have the template of training, unless that states
        a relation, which captions of probe sets can't."""
        template = self.template or self.recipe_given.template
        given = {} if template_of({"template": template}).relation else {"template": template}
        return ProbeRecipe(world=self.world, animals=self.probe_animals, textures=self.probe_textures, **given)

    @property
    def geometry(self) -> "EmbeddingGeometry":
        from menagerie.studies.measures.geometry import EmbeddingGeometry

        return EmbeddingGeometry(self.probe_set, self.store, self.resolution)

    @property
    def conditions(self) -> "Conditions":
        from menagerie.studies.measures.conditions import Conditions

        return Conditions(self.probe_set, self.store, self.resolution)

    @property
    def probe_measures(self) -> "Sequence[ProbeMeasure]":
        return self.geometry, self.conditions

    @property
    def first_place(self) -> dict[str, Any]:
        """The place at which all scorers are compared: the first one of the grid, with negation if there is any."""
        place = {name: values[0] for name, values in self.axes.items()}
        return place | ({"negated": self.negated} if self.negated else {})

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """The fields of the split that the grid varies; no coverage unless it is given, as only binding splits have
        it."""
        covered = {"compositions": self.coverage} if self.coverage != (1.0,) else {}
        return {name: getattr(self, name) for name in FRACTIONS} | covered

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan every model at every place, except models in `once`. Then plan at the first place all models with
        negation or, without negation, the models in `once`."""
        plain = {"negated": 0.0} if self.negated else {}
        everywhere = [model for model in self.models if model not in self.once]
        for seed, *place, model in product(self.seed_numbers, *self.axes.values(), everywhere):
            yield self.at(model, seed, **dict(zip(self.axes, place, strict=True)), **plain)
        first = self.models if self.negated else [model for model in self.once if model in self.models]
        for seed, model in product(self.seed_numbers, first):
            yield self.at(model, seed, **self.first_place)

    def page(self, records: Records) -> Iterator[Part]:
        from menagerie.studies.measures.geometry import alignment_table

        geometry, conditions = map(records.rows_of, (self.geometry, self.conditions))
        if not len(conditions):
            yield Paragraph("Nothing is measured yet.")
            return
        place = {"measure": "holds", "by": "scores", **self.first_place}
        held = conditions[(conditions[list(place)] == list(place.values())).all(axis=1)]
        yield from prediction_parts(records, geometry, self.world, self.resolution)
        yield from factor_parts(records, geometry)
        yield from condition_parts(held)
        yield from trade_off_parts(conditions, held)
        yield Heading("Alignment and edits", EDITS)
        yield alignment_table(geometry)

    def export(self, records: Records) -> None:
        """Write all rows of the measures into `geometry.csv` and `conditions.csv`."""
        from menagerie.studies.analysis.tables import to_csv

        for name, measure in (("geometry", self.geometry), ("conditions", self.conditions)):
            if len(rows := records.rows_of(measure)):
                to_csv(records.out / f"{name}.csv", rows)


def prediction_parts(records: Records, measured: "pd.DataFrame", world: str, resolution: int) -> Iterator[Part]:
    """Yield a figure and a table on how well the predictors do, on cells on which they weren't chosen."""
    from menagerie.studies.measures import predictors as its

    every = its.cells_with_predictors(records, measured)
    old = [its.measures_chosen_on(world, resolution, row) for row in every.to_dict("records")]
    if not len(cells := every[~np.array(old, bool)]):
        yield Sentence("No training run has a single vector for each text and records of unseen pairs to predict.")
        return
    found = its.correlate_predictors(cells)
    yield Sentence(
        f"Does the {its.NAMED.name} predict accuracy on unseen pairs? Its rank correlation with that, over "
        f"{len(cells)} training runs on which it wasn't chosen, is {found[0].over_all}: {found[0].outcome}."
    )
    names = [one.predictor.name for one in found]
    frame = cells.rename(columns={its.ACCURACY: "accuracy"}).assign(model=cells["model"].map(title_of))
    frame = frame.assign(accuracy=100 * frame["accuracy"]).melt([n for n in frame if n not in names], names, "measure")
    yield Chart("prediction", predictor_chart(frame, names), says=DOTS)
    header = ("measure", "expected", "all runs", "within a setting", "within a setting and model", "p", "outcome")
    rows = []
    for (name, *_, sign), *correlations, p, outcome in found:
        shown = "–" if np.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"
        rows.append((name, "higher" if sign == 1 else "lower", *map(str, correlations), shown, outcome))
    left = len(records.where(test=(its.TEST,)).scores) - len(cells)
    says = f"{CORRELATIONS} {left} runs are left out: the measures were chosen on them, or they have no text embedding."
    yield Rows("correlations", header, rows, says=says)


def predictor_chart(frame: "pd.DataFrame", names: Sequence[str]) -> Any:
    """Return a chart with a panel for each predictor, and a dot for each cell."""
    import altair as alt

    x = alt.X("value:Q", scale=alt.Scale(zero=False), title=None)
    y = alt.Y("accuracy:Q", scale=alt.Scale(zero=False), title="accuracy on unseen pairs (%)")
    colour = alt.Color("model:N", sort=None, title=None)
    dots = alt.Chart(frame).mark_circle(size=45).encode(x=x, y=y, color=colour, tooltip=list(frame))
    chance = alt.Chart(frame).mark_rule(strokeDash=[2, 3]).encode(y=alt.datum(50))
    panels = alt.layer(chance, dots, data=frame).properties(width=210, height=190)
    return panels.facet(alt.Facet("measure:N", sort=names, title=None), columns=2).resolve_scale(x="independent")


def factor_parts(records: Records, measured: "pd.DataFrame") -> Iterator[Part]:
    """Yield figures of what papers name as predictors, and of fits of sums and of products by coverage."""
    import pandas as pd

    from menagerie.studies.measures.predictors import coverage_rows, predictor_rows

    if rows := list(predictor_rows(records, measured)):
        yield Heading("Linear factors and products")
        yield Chart("predictors", estimates_chart(pd.DataFrame(rows), "predictor", "over", "test"), says=PREDICTORS)
    if rows := list(coverage_rows(measured)):
        yield Chart("coverage", estimates_chart(pd.DataFrame(rows), "coverage", "measure", "part"), says=COVERAGE)


def estimates_chart(frame: "pd.DataFrame", y: str, colour: str, panel: str) -> Any:
    """Return a chart with a panel for each value of a column: values with their intervals, one below the other."""
    import altair as alt

    at = {"y": alt.Y(f"{y}:N", sort=None, title=None), "yOffset": alt.YOffset(f"{colour}:N", sort=None)}
    base = alt.Chart(frame).encode(**at, color=alt.Color(f"{colour}:N", sort=None), tooltip=list(frame))
    none = alt.Chart(frame).mark_rule(strokeDash=[2, 3]).encode(x=alt.datum(0, title="value"))
    dots, ends = (
        base.mark_circle(size=45).encode(x=alt.X("value:Q", title="value")),
        base.mark_rule().encode(x=alt.X("low:Q", title="value"), x2="high:Q"),
    )
    panels = alt.layer(none, ends, dots, data=frame).properties(width=230)
    return panels.facet(alt.Facet(f"{panel}:N", sort=None, title=None), columns=3)


def condition_parts(held: "pd.DataFrame") -> Iterator[Part]:
    """Yield a table of how often models meet each condition, at the place where all are compared."""
    from menagerie.studies.measures.conditions import EVERY, INDEPENDENT
    from menagerie.studies.measures.probe_set import table_by_model

    yield Heading("The conditions", CONDITIONS_SAY)
    whole = held[held["part"].isin((EVERY, INDEPENDENT))]
    names = whole["condition"].where(whole["part"] == EVERY, INDEPENDENT)
    yield table_by_model("conditions-by-model", whole.assign(condition=names), ("condition",))
    refused = held[held["value"].isna()].groupby(["condition", "refused"], sort=False)["model"].unique()
    facts = {f"{name} is refused for {', '.join(map(title_of, its))}": why for (name, why), its in refused.items()}
    if facts:
        yield Facts(facts)


def trade_off_parts(rows: "pd.DataFrame", held: "pd.DataFrame") -> Iterator[Part]:
    """Yield whether models that categorise better bind worse: a figure, and the table of the paper's claims. Those on
    models are judged at the place where all are compared, over common seeds."""
    from menagerie.studies.analysis.intervals import mean_over_seeds
    from menagerie.studies.measures import conditions as its
    from menagerie.studies.measures.ideal import IdealEmbedding, least_margins
    from menagerie.studies.measures.predictors import correlation, correlation_outcome

    yield Heading("Does binding cost categorisation?", TRADE_OFF)
    cells = by_cell(rows, "embeddings", "margin", (its.OTHER_ATTRIBUTES, its.OTHER_VIEW))
    chart = trade_off_chart(cells.assign(model=cells["model"].map(title_of)))
    yield Chart("trade-off", chart, says=CURVE_SAYS)
    whole = by_cell(rows, "scores", "holds", (its.EVERY,))
    runs = list(zip(whole["model"], whole["seed"], strict=True))  # a model's cells of a seed are drawn together
    traded = correlation(*(whole[name].to_numpy(float) for name in its.CONDITIONS[:2]), runs)
    least = min(least_margins(IdealEmbedding(1.0)).values())
    ideal = "No space of embeddings with cosines as scores meets all conditions at once"
    lines = [(ideal, "constructed embedding, weight 1: least margin", f"{least:+.2f}, exact", "contradicted")]
    worse = "What is best for categorisation can't bind: models that categorise better bind worse"
    outcome = correlation_outcome(traded, -1, traded.p)
    lines.append((worse, "all runs: rank correlation", str(traded), outcome))
    for name in its.CONDITIONS[1:]:
        known = held[(held["part"] == its.EVERY) & (held["condition"] == name)].dropna(subset="value")
        one, other = (known[known["model"] == model].set_index("seed")["value"] for model in ("dcsm", "clip"))
        if len(gaps := (one - other).dropna()):
            gap = mean_over_seeds(list(gaps), -1.0)._replace(signed=True)
            claim = "Similarity maps of all patches and words (DCSM) meet the condition more often than CLIP does"
            lines.append((claim, f"DCSM − CLIP, {name}: points", str(gap), judge_difference(gap, 1)))
    yield Rows("claims", ("claim", "difference", "measured", "decided"), lines, says=CLAIMS)


def by_cell(rows: "pd.DataFrame", by: str, measure: str, parts: tuple[str, ...]) -> "pd.DataFrame":
    """Return a row for each cell, with its numbers of categorisation and of attribute binding."""
    from menagerie.studies.measures.conditions import CONDITIONS
    from menagerie.studies.measures.predictors import PLACE

    both = list(CONDITIONS[:2])
    labels = [name for name in ("model", "seed", *PLACE) if name in rows]
    chosen = rows[(rows["measure"] == measure) & (rows["by"] == by) & rows["part"].isin(parts)].dropna(subset="value")
    wide = chosen[chosen["condition"].isin(both)].pivot_table("value", labels, "condition", sort=False).reset_index()
    return wide.rename_axis(columns=None).reindex(columns=[*labels, *both])


def trade_off_chart(cells: "pd.DataFrame") -> Any:
    """Return a chart of the margins of cells and of constructed embeddings, categorisation along x, binding along y."""
    import altair as alt
    import pandas as pd

    from menagerie.studies.measures.conditions import BINDING, CATEGORISATION
    from menagerie.studies.measures.ideal import IdealEmbedding, pair_margins

    points = [(weight, *pair_margins(IdealEmbedding(weight))) for weight in CURVE]
    ideal = pd.DataFrame(points, columns=["weight", CATEGORISATION, BINDING]).assign(model="constructed")
    frame = pd.concat([ideal, cells], ignore_index=True)
    base = alt.Chart(frame).encode(x=f"{CATEGORISATION}:Q", y=f"{BINDING}:Q", tooltip=list(frame))
    curve = base.transform_filter("datum.model == 'constructed'").mark_line(color="#666", point=True)
    dots = base.transform_filter("datum.model != 'constructed'").mark_circle(size=45)
    layers = curve.encode(order="weight:Q"), dots.encode(color=alt.Color("model:N", title=None))
    return alt.layer(*layers).properties(width=320, height=260)


CURVE = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0]
DOTS = """A dot is a training run. Upwards: accuracy (%) on swaps of unseen pairs; dashed: chance. The first measure was
chosen beforehand, on other runs; it uses texts alone, and no accuracy."""
CORRELATIONS = """Spearman's rank correlation over training runs, with 95 % intervals by Student's t on Fisher's scale,
of a bootstrap that draws all runs of a model with a seed together. A perfect correlation has no interval; its p is from
permutations. Intervals are for further trainings of these models, not for new models. p is over all runs; those of the
last three measures are corrected for their number (Holm)."""
PREDICTORS = """Spearman's rank correlation with accuracy on swaps of unseen scenes, over all runs, within a setting of
the grid, and over the runs of one model; 95 % intervals. R2 of linear factors and their angle should predict
generalisation (2602.24264), so should what products explain beyond sums (2605.31503). Runs without a number are left
out; `runs` counts the others."""
COVERAGE = """R2 on held-out compositions of fits to their mean embeddings: a vector of the animal plus one of the
texture, and that plus a product of rank 1, by the share of compositions in training. Means over seeds with 95 %
intervals; below 0 a fit predicts less than the mean of all compositions."""
CONDITIONS_SAY = """Percent of scenes in which all parts of a condition (Kang et al. 2025) hold, with 95 % intervals
over seeds, at one setting of the grid. Chance is the share for scores in random order. All: every condition for which a
model's captions have words. If independent: the product of their shares."""
TRADE_OFF = """As inequalities the conditions don't contradict one another: a constructed embedding meets all. But the
embedding that is best for categorisation is the sum of its concepts, which doesn't bind."""
CURVE_SAYS = """Margins between embeddings of images, in cosines. To the right: by how much an image is nearer to its
swap than to an image of another object. Upwards: by how much it is nearer to another view of itself than to its swap.
Dots: training runs; curve: the constructed embedding, by its weight of conjunctions."""
CLAIMS = """The first verdict is a proof by example and needs no records: the least margin of any condition. Paper and
study differ in models, images and sizes."""
EDITS = """Means over seeds, all settings of the grid together, with 95 % intervals. After one matrix: swaps that are
right with a matrix between image and text, fitted on other pairs. Edits: of the scenes whose own caption is preferred,
the share in which the swapped one is preferred once the image's embedding is moved by the mean embeddings of its
compositions, of compositions of other animals, or of textures in places. Chance: after a move in a random direction."""
VECTORS = ("clip", "negclip", "siglip", "sparo", "fdt")
OTHERS = ("labclip", "oc-clip", "filip-phrases", "flair", "dcsm")
PRESETS = {
    "smoke": Geometry(
        **SMOKE | {"recipe": Recipe(steps=30, batch=32, warmup=5), "test_scenes": 24, "views": 4},
        **{"pairs": (0.5,), "hard_negatives": (0.0,), "once": ("oc-clip",), "negated": 0.5},
    ),
    "laptop": Geometry(
        **BREADTH | {"models": VECTORS + OTHERS, "hard_negatives": (0.0, 1.0)},
        **{"tuned": "breadth", "pairs": (0.25, 0.5, 1.0), "once": OTHERS, "negated": 0.5},
        base=BindingRecipe(**APART),
    ),
    "spatial": Geometry(
        **BREADTH | {"models": VECTORS + OTHERS},
        **{"tuned": "breadth-spatial", "pairs": (0.5,), "views": 2},
        base=SpatialRecipe(**APART),
    ),
    "coverage": Geometry(
        **LEARNS | {"models": ("clip",)},
        **{"pairs": (1.0,), "hard_negatives": (0.0,), "coverage": (0.375, 0.625, 0.875)},
        probe_textures=("red", "white", "asphalt", "grass", "blue"),
        base=BindingRecipe(**APART, seen_arrangements=True),
    ),
}

if __name__ == "__main__":
    main(PRESETS)

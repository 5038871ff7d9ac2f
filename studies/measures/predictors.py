"""Whether measures of a run's embeddings predict its accuracy on unseen pairs: rank correlations over runs."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from menagerie.studies.analysis.estimate import Estimate
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.analysis.words import one_line
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.parts import Chart, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.probe_set import BOTH, TEXT
from menagerie.studies.measures.ranks import correlation, holm
from menagerie.studies.runs.data import FRACTIONS

ACCURACY = "unseen_pairs"
TEST = ("unseen_pairs", "swap")
PLACE = (*FRACTIONS, "negated")
CHOSEN_ON: tuple[dict[str, Any], ...] = (
    {"pairs": 0.2, "hard_negatives": 0.0, "seeds": range(5)},
    *({"pairs": pairs, "hard_negatives": hard, "seeds": (0,)} for pairs in (0.2, 0.8) for hard in (0.0, 1.0)),
)
"""The cells on which the measures were chosen: those of `CHOSEN_MODELS` on the world `pug` at 64 pixels."""
CHOSEN_MODELS = ("clip", "oc-clip")
DOTS = """A dot is a training run. Upwards: accuracy (%) on swaps of unseen pairs; dashed: chance. To the right: a
measure of the run's embeddings, on scenes in views that no training used. The first measure was chosen beforehand, on
other runs; it uses texts alone, and no accuracy."""
SAYS = """Spearman's rank correlation over training runs, with 95 % intervals by Student's t on Fisher's scale. Their
spread is that of a bootstrap that draws all runs of a model with a seed together. A perfect correlation has no spread
and so no interval; its p is from permutations of these runs. Models with the same seed share their splits, so intervals
are for further trainings of these models, not for new models. More pairs and more hard negatives raise everything
together. So ranks are also compared within a setting of the grid, and within a setting and a model, and then pooled. p
is over all runs; those of the last three measures are corrected for their number (Holm)."""


class Predictor(NamedTuple):
    """A measure by which accuracy on unseen pairs is predicted."""

    name: str
    part: str
    measure: str
    sign: int
    """Sign of the correlation that is expected: 1 or -1."""


NAMED = Predictor("binding share of the text's embedding", TEXT, "share", 1)
NEXT = (
    Predictor("gap between images and texts", BOTH, "gap", -1),
    Predictor("swaps right after one matrix", BOTH, "after", 1),
    Predictor("cos of what a swap changes in image and text", BOTH, "cosine", 1),
)
"""The measures that came second to fourth after `NAMED` on the cells on which it was chosen."""


class TestedPredictor(NamedTuple):
    """How a predictor's ranks correlate with those of accuracy on unseen pairs."""

    predictor: Predictor
    over_all: Estimate
    by_place: Estimate
    """Correlation of ranks within a place of the grid."""
    by_model: Estimate
    """Correlation of ranks within a place and a model, over its seeds."""
    p: float
    """p over all cells; for the measures in `NEXT` it is corrected for their number (Holm)."""
    outcome: str

    @property
    def row(self) -> tuple[str, ...]:
        p = DASH if np.isnan(self.p) else "<0.001" if self.p < 0.001 else f"{self.p:.3f}"
        expected = "higher" if self.predictor.sign > 0 else "lower"
        return self.predictor.name, expected, *map(str, (self.over_all, self.by_place, self.by_model)), p, self.outcome


def measures_chosen_on(world: str, resolution: int, cell: Mapping[str, Any]) -> bool:
    """Return whether the measures were chosen on a cell, among others."""
    if (world, resolution) != ("pug", 64) or cell["model"] not in CHOSEN_MODELS:
        return False
    return any(cell["seed"] in its["seeds"] and all(cell[name] == its[name] for name in FRACTIONS) for its in CHOSEN_ON)


def cells_with_predictors(records: Records, measured: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each finished cell with all predictors: labels, predictors, and accuracy on unseen pairs."""
    scores = records.where(test=(TEST,)).scores
    if not len(scores) or not len(measured):
        return pd.DataFrame(columns=[*PLACE, "model", "seed", ACCURACY, *(its.name for its in (NAMED, *NEXT))])
    labels = ["model", "seed", *(name for name in PLACE if name in scores)]
    found = scores[[*labels, "accuracy"]].rename(columns={"accuracy": ACCURACY}).dropna()
    for its in (NAMED, *NEXT):
        chosen = measured[(measured["part"] == its.part) & (measured["measure"] == its.measure)]
        found = found.merge(chosen[[*labels, "value"]].rename(columns={"value": its.name}), on=labels)
    return found.dropna().reset_index(drop=True)


def correlate_predictors(cells: pd.DataFrame) -> list[TestedPredictor]:
    """Return the tests of `NAMED` and of `NEXT`. The bootstrap draws a model's cells with the same seed together."""
    places = list(map(tuple, cells[[name for name in PLACE if name in cells]].itertuples(index=False)))
    runs = list(zip(cells["model"], cells["seed"], strict=True))
    both = list(zip(places, cells["model"], strict=True))
    accuracy, found = cells[ACCURACY].to_numpy(float), []
    for its in (NAMED, *NEXT):
        found.append([correlation(cells[its.name].to_numpy(float), accuracy, runs, of) for of in ((), places, both)])
    p = [found[0][0].p, *holm([its[0].p for its in found[1:]])]
    return [
        TestedPredictor(its, *three, value, correlation_outcome(three[0], its.sign, value))
        for its, three, value in zip((NAMED, *NEXT), found, p, strict=True)
    ]


def correlation_outcome(its: Estimate, sign: int, p: float, level: float = 0.05) -> str:
    """Return the verdict: "confirmed" or "contradicted" if p is below the level, else "undecided"."""
    if np.isnan(p) or p >= level:
        return "undecided"
    return "confirmed" if its.value * sign > 0 else "contradicted"


def prediction_parts(records: Records, measured: pd.DataFrame, world: str, resolution: int) -> Iterator[Part]:
    """Yield a sentence, a figure and a table on how well the predictors do."""
    every = cells_with_predictors(records, measured)
    old = np.array([measures_chosen_on(world, resolution, row) for row in every.to_dict("records")], bool)
    if not len(cells := every[~old]):
        yield Sentence("No training run has a single vector for each text and records of unseen pairs to predict.")
        return
    first, *others = correlate_predictors(cells)
    yield Sentence(
        f"Does the {NAMED.name} predict accuracy on unseen pairs? Its rank correlation with that, over {len(cells)} "
        f"training runs on which it wasn't chosen, is {first.over_all}: {first.outcome}. Within a setting of the grid "
        f"it is {first.by_place}, within a setting and a model {first.by_model}."
    )
    yield Chart("prediction", dots_of_cells(cells), says=one_line(DOTS))
    lacking = len(records.where(test=(TEST,)).scores) - len(every)
    left = {"the measures were chosen on them": int(old.sum()), "they have no single vector for a text": lacking}
    without = "".join(f" Training runs left out: {number}, as {why}." for why, number in left.items() if number)
    header = ("measure", "expected", "all runs", "within a setting", "within a setting and model", "p", "outcome")
    yield Rows("correlations", header, [its.row for its in (first, *others)], says=one_line(SAYS) + without)


def dots_of_cells(cells: pd.DataFrame) -> Any:
    """Return a chart with a panel for each predictor, and a dot for each cell."""
    import altair as alt

    names = [its.name for its in (NAMED, *NEXT)]
    labels = [name for name in cells if name not in names]
    frame = cells.assign(model=cells["model"].map(title_of), accuracy=100 * cells[ACCURACY])
    frame = frame.melt([*labels, "accuracy"], names, "measure").drop(columns=ACCURACY)
    base = alt.Chart(frame)
    dots = base.mark_circle(size=45).encode(
        x=alt.X("value:Q", scale=alt.Scale(zero=False), title=None),
        y=alt.Y("accuracy:Q", scale=alt.Scale(zero=False), title="accuracy on unseen pairs (%)"),
        color=alt.Color("model:N", sort=None, title=None),
        tooltip=list(frame),
    )
    chance = base.mark_rule(strokeDash=[2, 3]).encode(y=alt.datum(50))
    panels = alt.layer(chance, dots, data=frame).properties(width=210, height=190)
    return panels.facet(alt.Facet("measure:N", sort=names, title=None), columns=2).resolve_scale(x="independent")

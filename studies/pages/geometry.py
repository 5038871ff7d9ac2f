"""The page of the study of geometry: predictors of accuracy on unseen pairs, the conditions, and their trade-off."""

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from menagerie.studies.analysis.ranks import Correlation, correlation
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.analysis.words import one_line
from menagerie.studies.embeddings.conditions import ALL, BINDING, CATEGORISATION, CONDITIONS, EVERY, INDEPENDENT
from menagerie.studies.embeddings.ideal import IdealEmbedding, least_margins
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import EXPECTED, Verdict, claims_section, outcomes_sentence
from menagerie.studies.frame.parts import Heading, Paragraph, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.bits import BOTH, IMAGE, TEXT
from menagerie.studies.measures.embedding_geometry import EDITED
from menagerie.studies.pages.geometry_cells import (
    ACCURACY,
    NAMED,
    NEXT,
    TEST,
    TestedPredictor,
    cells_with_predictors,
    correlate_predictors,
    correlation_outcome,
    measures_chosen_on,
)
from menagerie.studies.pages.geometry_conditions import ConditionRows, mean_percent
from menagerie.studies.pages.geometry_figures import CellDots, TradeOff
from menagerie.studies.pages.probes import mean_of

if TYPE_CHECKING:
    import pandas as pd

    from menagerie.studies.measures.conditions import Conditions
    from menagerie.studies.measures.embedding_geometry import EmbeddingGeometry

WEIGHTS = (0.0, 0.1, 0.3, 0.5, 1.0, 2.0)
CORRELATED = ("measure", "expected", "all runs", "within a setting", "within a setting and model", "p", "outcome")
PARTS_BY = {"scores": "Their parts, by scores", "embeddings": "Between images, and between texts: by embeddings"}
ALIGNED: Mapping[str, tuple[str, str]] = {
    "text: binding share": (TEXT, "share"),
    "image: binding share": (IMAGE, "share"),
    "gap": (BOTH, "gap"),
    "cos of what a swap changes": (BOTH, "cosine"),
    "swaps right": (BOTH, "before"),
    "after one matrix": (BOTH, "after"),
    "edit: compositions": (EDITED, "compositions"),
    "other compositions": (EDITED, "others"),
    "textures in places": (EDITED, "places"),
}


class GeometryPage:
    """The page of a study, from the runs that are finished."""

    def __init__(
        self,
        records: Records,
        measures: "tuple[EmbeddingGeometry, Conditions]",
        place: Mapping[str, Any],
        images: tuple[str, int],
    ) -> None:
        """`place` is where in the grid all models are compared; `images` has world and side in pixels."""
        self.geometry, conditions = map(records.rows_of, measures)
        self.held = ConditionRows(conditions, place)
        every = cells_with_predictors(records, self.geometry)
        old = np.array([measures_chosen_on(*images, row) for row in every.to_dict("records")], bool)
        self.cells, self.left_out = every[~old], int(old.sum())
        self.lacking = len(records.where(test=(TEST,)).scores) - len(every)

    def parts(self) -> Iterator[Part]:
        """Yield the sentences, then the figures and tables behind them."""
        if not len(self.held.frame):
            yield Paragraph("Nothing is measured yet.")
            return
        found, verdicts = correlate_predictors(self.cells), list(self.verdicts())
        yield from self.answer(found)
        yield Sentence(outcomes_sentence(verdicts, "Kang et al. 2025"))
        if len(self.cells):
            names = [its.name for its in (NAMED, *NEXT)]
            yield CellDots("prediction", self.cells, names, ACCURACY, says=one_line(DOTS))
            rows = list(map(correlation_row, found))
            yield Rows("correlations", CORRELATED, rows, says=f"{one_line(CORRELATIONS)} {self.without()}".strip())
        yield from self.of_conditions()
        yield from self.of_trade_off()
        yield from claims_section(verdicts, "difference or correlation", one_line(CLAIMS))
        yield Heading("Alignment and edits", one_line(EDITS))
        yield Rows("alignment", ("model", *ALIGNED), list(self.aligned()))

    def answer(self, found: list[TestedPredictor]) -> Iterator[Part]:
        """Yield the sentences on what predicts accuracy on unseen pairs, which conditions hold, and their trade-off."""
        first, *others = found
        if not len(self.cells):
            yield Paragraph("No training run has a single vector for each text and records of unseen pairs to predict.")
        else:
            yield Sentence(
                f"Does the {NAMED.name} predict accuracy on unseen pairs? Its rank correlation with that, over "
                f"{len(self.cells)} training runs on which it wasn't chosen, is {first.over_all}: {first.outcome}. "
                f"Within a setting of the grid it is {first.by_place}, within a setting and a model {first.by_model}."
            )
            said = (f"{its.predictor.name} {its.over_all} ({its.outcome})" for its in others)
            yield Sentence(f"Rank correlations of three other measures, tested together: {'; '.join(said)}.")
        for model, its in self.held.of_models.items():
            named = ", ".join(name for name in CONDITIONS if (name, EVERY) in its)
            yield Sentence(
                f"{title_of(model)} meets all conditions ({named}) in {mean_percent(its[ALL, EVERY])} % of scenes "
                f"(chance {self.held.chance(ALL)}); if they were independent it would be "
                f"{mean_percent(its[ALL, INDEPENDENT], False)} %."
            )
        yield Sentence(
            "Do models that categorise better bind worse? Rank correlation of categorisation and attribute binding "
            f"over all training runs: {self.traded}."
        )

    def without(self) -> str:
        """Say how many training runs are left out, and why."""
        reasons = {
            "the measures were chosen on them": self.left_out,
            "their scorers have no single vector for a text, or measures were refused (`geometry.csv`)": self.lacking,
        }
        return " ".join(f"Training runs left out: {number}, as {why}." for why, number in reasons.items() if number)

    def of_conditions(self) -> Iterator[Part]:
        """Yield tables of how often models meet each condition, at the place where all are compared."""
        yield Heading("The conditions", one_line(CONDITIONS_SAY))
        yield Rows("conditions-by-model", ("model", *self.held.header), list(self.held.rows()))
        yield from map(Paragraph, self.held.refusals())
        for by, title in PARTS_BY.items():
            header, rows = self.held.parts(by)
            if rows:
                yield Rows(f"parts-{by}", header, rows, folded=title)

    def of_trade_off(self) -> Iterator[Part]:
        yield Heading("Does binding cost categorisation?", one_line(TRADE_OFF))
        cells = self.held.margins, self.held.shares
        yield TradeOff("trade-off", *cells, CATEGORISATION, BINDING, self.held.chances, says=one_line(CURVE_SAYS))
        columns = [ideal_margins(weight) for weight in WEIGHTS]
        rows = [(name, *(f"{its[name]:.3f}" for its in columns)) for name in columns[0]]
        yield Rows(
            "constructed",
            ("least margin", *(f"weight {weight:g}" for weight in WEIGHTS)),
            rows,
            says=one_line(CONSTRUCTED),
        )

    @cached_property
    def traded(self) -> Correlation:
        """The rank correlation of categorisation and binding. A model's cells of a seed are drawn together."""
        found = self.held.shares
        runs = list(zip(found["model"], found["seed"], strict=True))
        return correlation(*(found[name].to_numpy(float) for name in (CATEGORISATION, BINDING)), runs)

    def verdicts(self) -> Iterator[Verdict]:
        """Yield verdicts on the claims of Kang et al. for which this study has runs."""
        least = min(ideal_margins(1.0).values())
        ideal = "contradicted" if least > 0 else "confirmed"
        yield claim_verdict(
            "ideal", "constructed embedding, weight 1", "least margin of all", ideal, -1, f"{least:+.2f}, exact"
        )
        outcome = correlation_outcome(self.traded, -1, self.traded.p)
        yield claim_verdict("trade", "all runs", "percent of scenes", outcome, -1, str(self.traded))
        for name in CONDITIONS[1:]:
            if gap := self.held.gap("dcsm", "clip", name):
                sure = gap.low > 0 or gap.high < 0
                outcome = ("confirmed" if gap.low > 0 else "contradicted") if sure else "undecided"
                yield claim_verdict("dcsm", f"DCSM − CLIP: {name}", "percent of scenes", outcome, 1, mean_percent(gap))

    def aligned(self) -> Iterator[tuple[str, ...]]:
        frame = self.geometry.dropna(subset="value")
        for model in dict.fromkeys(frame["model"]):
            its = frame[frame["model"] == model]
            yield title_of(model), *(mean_with_chance(its, *where) for where in ALIGNED.values())


@cache  # pages are drawn after every run
def ideal_margins(weight: float) -> dict[str, float]:
    """Return the least margin of each condition for the constructed embedding with this weight of conjunctions."""
    return least_margins(IdealEmbedding(weight))


def correlation_row(its: TestedPredictor) -> tuple[str, ...]:
    p = DASH if np.isnan(its.p) else "<0.001" if its.p < 0.001 else f"{its.p:.3f}"
    three = map(str, (its.over_all, its.by_place, its.by_model))
    return its.predictor.name, "higher" if its.predictor.sign > 0 else "lower", *three, p, its.outcome


def claim_verdict(claim: str, row: str, tests: str, outcome: str, sign: int, measured: str) -> Verdict:
    return Verdict(CLAIMED[claim], row, tests, outcome, EXPECTED[sign], measured)


def mean_with_chance(rows: "pd.DataFrame", part: str, measure: str) -> str:
    """Return as text the mean over seeds, with places of the grid pooled, and its chance; a dash without rows."""
    chosen = rows[(rows["part"] == part) & (rows["measure"] == measure)]
    if not len(chosen):
        return DASH
    mean = mean_of(list(chosen.groupby("seed")["value"].mean()), -np.inf, np.inf)
    return f"{mean} (chance {chosen['chance'].mean():.2f})"


CLAIMED = {
    "ideal": "No space of embeddings with cosines as scores meets all conditions at once",
    "trade": "What is best for categorisation can't bind: models that categorise better bind worse",
    "dcsm": "Similarity maps of all patches and words (DCSM) meet the condition more often than CLIP does",
}
DOTS = """A dot is a training run. Upwards: accuracy on swaps of unseen pairs; dotted: chance. To the right: a measure
of the run's embeddings, on scenes in views that no training used. The first measure was chosen beforehand, on other
runs; it uses texts alone, and no accuracy."""
CORRELATIONS = """Spearman's rank correlation over training runs, with 95 % intervals by Student's t on Fisher's scale.
Their spread is that of a bootstrap that draws all runs of a model with a seed together. A perfect correlation has no
spread and so no interval; its p is from permutations of these runs. Models with the same seed share their splits, so
intervals are for further trainings of these models, not for new models. More pairs and more hard negatives raise
everything together. So ranks are also compared within a setting of the grid, and within a setting and a model, and then
pooled. p is over all runs; those of the last three measures are corrected for their number (Holm)."""
CONDITIONS_SAY = """Percent of scenes in which all parts of a condition hold, with 95 % intervals over seeds. Chance is
the share for scores in random order. The conditions are those of Kang et al. 2025 for images of two objects, with
captions worded as in training. All: every condition for which a model's captions have words holds. If independent: the
product of their shares. All models are compared at one setting of the grid."""
TRADE_OFF = """As inequalities the conditions don't contradict one another: a constructed embedding meets all. But the
embedding that is best for categorisation is the sum of its concepts, which doesn't bind."""
CURVE_SAYS = """Left: margins between embeddings of images, in cosines. To the right: by how much an image is nearer to
its swap than to an image of another object. Upwards: by how much it is nearer to another view of itself than to its
swap. A dot is a training run of a scorer with one vector, averaged over scenes. The curve is the constructed embedding;
the number at a point is its weight of conjunctions. Right: percent of scenes in which each condition holds, by
scores of images with texts. A dot is a training run of any scorer; dotted: chance."""
CONSTRUCTED = """The least margin of each condition over all scenes; where it is above 0 the condition holds everywhere.
Embeddings are unit vectors of object + attribute + weight (object with attribute) + weight (object with place), of 6
objects and 4 attributes."""
CLAIMS = """The first verdict is a proof by example and needs no records. Paper and study differ in models, images and
sizes. Our models are trained from scratch for a fixed number of steps, which may end before curves are flat."""
EDITS = """Means over seeds, all settings of the grid together, with 95 % intervals. After one matrix: swaps that are
right with a matrix between image and text, fitted on other pairs; this is what LABCLIP could repair. Edits: of the
scenes whose own caption is preferred, the share in which the swapped one is preferred once the image's embedding is
moved by the mean embeddings of its compositions, of compositions of other animals, or of textures in places. Chance:
after a move as far in a random direction."""

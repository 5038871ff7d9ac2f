"""The cells of the study of geometry: what was measured of each, and whether it predicts accuracy on unseen pairs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from menagerie.studies.analysis.ranks import Correlation, correlation, holm
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.bits import BOTH, TEXT
from menagerie.studies.runs.data import FRACTIONS

if TYPE_CHECKING:
    import pandas as pd

ACCURACY = "unseen_pairs"
TEST = ("unseen_pairs", "swap")
PLACE = (*FRACTIONS, "negated")
CHOSEN_ON: tuple[dict[str, Any], ...] = (
    {"pairs": 0.2, "hard_negatives": 0.0, "seeds": range(5)},
    *({"pairs": pairs, "hard_negatives": hard, "seeds": (0,)} for pairs in (0.2, 0.8) for hard in (0.0, 1.0)),
)
"""The cells on which the measures were chosen: those of `CHOSEN_MODELS` on the world `pug` at 64 pixels."""
CHOSEN_MODELS = ("clip", "oc-clip")


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
    over_all: Correlation
    by_place: Correlation
    """Correlation of ranks within a place of the grid."""
    by_model: Correlation
    """Correlation of ranks within a place and a model, over its seeds."""
    p: float
    """p over all cells; for the measures in `NEXT` it is corrected for their number (Holm)."""
    outcome: str


def measures_chosen_on(world: str, resolution: int, cell: Mapping[str, Any]) -> bool:
    """Return whether the measures were chosen on a cell, among others."""
    if (world, resolution) != ("pug", 64) or cell["model"] not in CHOSEN_MODELS:
        return False
    return any(cell["seed"] in its["seeds"] and all(cell[name] == its[name] for name in FRACTIONS) for its in CHOSEN_ON)


def cells_with_predictors(records: Records, measured: "pd.DataFrame") -> "pd.DataFrame":
    """Return a row for each finished cell with all predictors: labels, predictors, and accuracy on unseen pairs."""
    import pandas as pd

    scores = records.where(test=(TEST,)).scores
    if not len(scores) or not len(measured):
        return pd.DataFrame(columns=[*PLACE, "model", "seed", ACCURACY, NAMED.name, *(its.name for its in NEXT)])
    labels = ["model", "seed", *(name for name in PLACE if name in scores)]
    found = scores[[*labels, "accuracy"]].rename(columns={"accuracy": ACCURACY}).dropna()
    for its in (NAMED, *NEXT):
        chosen = measured[(measured["part"] == its.part) & (measured["measure"] == its.measure)]
        found = found.merge(chosen[[*labels, "value"]].rename(columns={"value": its.name}), on=labels)
    return found.dropna().reset_index(drop=True)


def correlate_predictors(found: "pd.DataFrame") -> list[TestedPredictor]:
    """Return the tests of `NAMED` and of `NEXT`. The p values of `NEXT` are corrected for their number (Holm)."""
    each = [correlations(found, its) for its in (NAMED, *NEXT)]
    p = [each[0][0].p, *holm([its[0].p for its in each[1:]])]
    return [
        TestedPredictor(its, *three, value, correlation_outcome(three[0], its.sign, value))
        for its, three, value in zip((NAMED, *NEXT), each, p, strict=True)
    ]


def correlations(found: "pd.DataFrame", its: Predictor) -> list[Correlation]:
    """Return the rank correlations of a predictor with accuracy: over all cells, within places, and within places and
    models. The bootstrap draws a model's cells with the same seed together."""
    x, y = (found[name].to_numpy(float) for name in (its.name, ACCURACY))
    places = list(map(tuple, found[[name for name in PLACE if name in found]].itertuples(index=False)))
    models = list(found["model"])
    runs = list(zip(models, found["seed"], strict=True))
    both = list(zip(places, models, strict=True))
    return [correlation(x, y, runs, groups) for groups in ((), places, both)]


def correlation_outcome(its: Correlation, sign: int, p: float, level: float = 0.05) -> str:
    """Return the verdict: "confirmed" or "contradicted" if p is below the level, else "undecided"."""
    if np.isnan(p) or p >= level:
        return "undecided"
    return "confirmed" if its.value * sign > 0 else "contradicted"

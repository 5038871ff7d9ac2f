"""Whether measures of a run's embeddings predict its accuracy on unseen pairs: rank correlations over runs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from menagerie.studies.analysis.intervals import Estimate
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.probe_set import BOTH, TEXT
from menagerie.studies.measures.ranks import correlation, correlation_outcome, holm
from menagerie.studies.runs.data import FRACTIONS

ACCURACY = "unseen_pairs"
TEST = ("unseen_pairs", "swap")
PLACE = (*FRACTIONS, "negated")


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


def measures_chosen_on(world: str, resolution: int, cell: Mapping[str, Any]) -> bool:
    """Return whether the measures were chosen on a cell, among others: on CLIP and OC-CLIP in the world `pug` at 64
    pixels, with five seeds at one place of the grid and with one at three others."""
    if (world, resolution) != ("pug", 64) or cell["model"] not in ("clip", "oc-clip"):
        return False
    place = tuple(cell[name] for name in FRACTIONS)
    seeds = 5 if place == (0.2, 0.0) else 1 if place in ((0.2, 1.0), (0.8, 0.0), (0.8, 1.0)) else 0
    return cell["seed"] < seeds


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

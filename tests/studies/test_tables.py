"""Results as frames: nothing is lost on the way, and tables show what they should."""

import itertools
import statistics

import numpy as np
import pandas as pd
import pytest

from menagerie.studies.analysis.tables import DASH, WAITING, escape, pivot, pivot_texts, to_latex, to_rows

RNG = np.random.default_rng(0)
MODELS, SEEDS, PAIRS, NEGATIVES = ("clip", "oc-clip"), 3, (0.8, 0.2), (0.0, 1.0)
SUBSETS, TASKS = ("unseen_pairs", "seen_pairs", "different_bag", "train_pairs"), ("swap", "one animal", "text score")


def score(empty):
    """The scores of one subset and task, as cells write them."""
    if empty:
        return {"accuracy": None, "tie_rate": None, "n": 0}
    return {"accuracy": float(RNG.random()) * 10.0 ** -RNG.integers(6), "tie_rate": 1e-07, "n": int(RNG.integers(999))}


def result(model, seed, pairs, negatives, subsets=SUBSETS):
    """One finished cell; the last subset is empty where all pairs are in training."""
    scores = {name: {task: score(name == "different_bag" and negatives) for task in TASKS} for name in subsets}
    place = {"model": model, "seed": seed, "pairs": pairs, "hard_negatives": negatives}
    return place | {"images_seen": 512, "subsets": scores, "training_pairs": 2, "all_pairs": 11}


@pytest.fixture(scope="module")
def results():
    places = itertools.product(range(SEEDS), PAIRS, NEGATIVES, MODELS)
    return [result(model, seed, pairs, negatives) for seed, pairs, negatives, model in places]


def tidy(results):
    """A row for each result, subset and task."""
    names = ("model", "seed", "pairs", "hard_negatives")
    rows = [
        {name: one[name] for name in names} | {"subset": subset, "task": task, **scores}
        for one in results
        for subset, tasks in one["subsets"].items()
        for task, scores in tasks.items()
    ]
    return pd.DataFrame(rows).astype({"accuracy": float})


def test_pivots_have_means_and_deviations_over_what_they_leave_out(results):
    frame = tidy(results)
    table = pivot(frame, ["task", "model"], ["subset", "pairs"])
    assert table.mean.shape == table.deviation.shape == (len(TASKS) * len(MODELS), len(SUBSETS) * len(PAIRS))
    assert [name[0] for name in table.mean.columns[:2]] == ["unseen_pairs"] * 2, "in the order of the frame"
    values = [
        r["subsets"]["seen_pairs"]["swap"]["accuracy"] for r in results if (r["model"], r["pairs"]) == ("clip", 0.2)
    ]
    place = ("swap", "clip"), ("seen_pairs", 0.2)
    assert table.mean.loc[place] == statistics.mean(values)
    assert table.deviation.loc[place] == statistics.stdev(values)
    other = pivot(frame, ["subset", "pairs"], ["task", "model"])
    pd.testing.assert_frame_equal(other.mean, table.mean.T, check_names=False)


def test_a_table_has_the_rows_columns_and_deviations_that_are_asked_for(results):
    table = pivot(tidy(results[:1]), ["model"], ["subset", "task"])
    columns = pd.MultiIndex.from_tuples([("seen_pairs", "swap"), ("seen_pairs", "no task")])
    shown = pivot_texts(table, ["oc-clip", "clip"], columns)
    accuracy = results[0]["subsets"]["seen_pairs"]["swap"]["accuracy"]
    header = ["seen_pairs: swap", "seen_pairs: no task"]
    assert to_rows(shown) == [header, [WAITING] * 2, [f"{100 * accuracy:.1f}", DASH]]
    frame = pd.DataFrame({"row": ["a", "a", "b"], "column": "x", "accuracy": [0.5, 0.75, 0.25]})
    assert list(pivot_texts(pivot(frame, ["row"], ["column"]), deviations=True)["x"]) == ["62.5 ± 17.7", "25.0"]
    assert list(pivot_texts(pivot(frame, ["row"], ["column"]), scale=1.0)["x"]) == ["0.6", "0.2"]
    levels = pivot_texts(table).reset_index()
    assert r"\multicolumn{3}{c}{unseen\_pairs}" in to_latex(levels, "By subset and task")
    assert to_rows(levels)[0][:2] == ["model", "unseen_pairs: swap"]


def test_latex_is_escaped_and_aligned():
    text = to_latex(pd.DataFrame([("oc-clip", "95.0"), ("clip & co", "–")], columns=["model", "a_b"]), "100 % sure")
    assert r"clip \& co & – \\" in text
    assert r"model & a\_b \\" in text
    assert r"\begin{tabular}{lr}" in text
    assert r"\caption{100 \% sure}" in text
    assert [text.count(rf"\{rule}rule") for rule in ("top", "mid", "bottom")] == [1, 1, 1]
    assert escape("{~^\\}") == r"\{\textasciitilde{}\^{}\textbackslash{}\}"

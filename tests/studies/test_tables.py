"""Results as frames: nothing is lost on the way, and tables show what they should."""

import itertools
import statistics
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from menagerie.studies.analysis.tables import DASH, WAITING, described, escape, pivot, tidy, to_csv, to_latex, to_rows
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.grids.figures import bars, heat_maps
from menagerie.studies.grids.tables import summary, task_table
from menagerie.studies.runs.results import COLUMNS, mean_accuracy, write_results

RNG = np.random.default_rng(0)
MODELS, SEEDS, PAIRS, NEGATIVES = ("clip", "oc-clip"), 3, (0.8, 0.2), (0.0, 1.0)
SUBSETS, TASKS = ("unseen_pairs", "seen_pairs", "different_bag", "train_pairs"), ("swap", "one animal", "quad text")


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


def test_a_frame_has_what_results_csv_has(results, tmp_path):
    """Byte for byte: every digit of every number, and empty cells where nothing is defined."""
    write_results(tmp_path, results)
    frame = tidy(results)
    to_csv(tmp_path / "frame.csv", frame)
    assert (tmp_path / "frame.csv").read_bytes() == (tmp_path / "results.csv").read_bytes()
    assert list(frame.columns) == list(COLUMNS)
    assert len(frame) == len(results) * len(SUBSETS) * len(TASKS)
    assert frame.dtypes[["seed", "n", "images_seen"]].eq(np.int64).all()
    assert frame.accuracy.isna().sum() == len(results) / 2 * len(TASKS)


def test_without_results_there_is_an_empty_frame(tmp_path):
    write_results(tmp_path, [])
    to_csv(tmp_path / "frame.csv", tidy([]))
    assert (tmp_path / "frame.csv").read_bytes() == (tmp_path / "results.csv").read_bytes()
    table = described(pivot(tidy([]), ["model"], ["subset"]), ["clip"], ["seen_pairs"])
    assert to_rows(table) == [["seen_pairs"], [WAITING]]


def test_a_pivot_has_means_and_deviations_over_what_it_leaves_out(results):
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


def test_a_description_chooses_orders_and_fills_up(results):
    table = pivot(tidy(results[:1]), ["model"], ["subset", "task"])
    columns = pd.MultiIndex.from_tuples([("seen_pairs", "swap"), ("seen_pairs", "no task")])
    shown = described(table, ["oc-clip", "clip"], columns)
    accuracy = results[0]["subsets"]["seen_pairs"]["swap"]["accuracy"]
    header = ["seen_pairs: swap", "seen_pairs: no task"]
    assert to_rows(shown) == [header, [WAITING] * 2, [f"{100 * accuracy:.1f}", DASH]]


def test_deviations_are_shown_where_there_are_seeds():
    frame = pd.DataFrame({"row": ["a", "a", "b"], "column": "x", "accuracy": [0.5, 0.75, 0.25]})
    shown = described(pivot(frame, ["row"], ["column"]), deviations=True)
    assert list(shown["x"]) == ["62.5 ± 17.7", "25.0"]
    assert list(described(pivot(frame, ["row"], ["column"]), scale=1.0)["x"]) == ["0.6", "0.2"]


@pytest.mark.parametrize("finished", [0, 5, None], ids=lambda count: f"{count} cells")
def test_a_grids_tables_show_the_means_of_its_figures(results, finished):
    """Also of a grid that isn't finished."""
    grid = PRESETS["smoke"]
    config = type(grid)(models=MODELS, pairs=PAIRS, hard_negatives=NEGATIVES, seeds=SEEDS)
    some = results[:finished]

    def percent(model, test, pairs, negatives, task="swap"):
        found = mean_accuracy(some, model, test, {"pairs": pairs, "hard_negatives": negatives}, task)
        if found.mean is None:
            return DASH if found.seeds else WAITING
        return f"{100 * found.mean:.1f}"

    rows = to_rows(summary(config, some))
    assert rows[0] == ["model", "pairs", "hard negatives", *config.tests]
    places = list(itertools.product(PAIRS, NEGATIVES, MODELS))
    assert [row[3:] for row in rows[1:]] == [[percent(m, test, p, h) for test in config.tests] for p, h, m in places]
    counted = " (2 of 11)" if some else " "
    assert [row[:3] for row in rows[1:]] == [[m, f"{p:.0%}{counted}", f"{h:.0%}"] for p, h, m in places]
    rows = to_rows(task_table(config, some))
    tasks = rows[0][4:]
    assert rows[0][:4] == ["model", "test", "pairs", "hard negatives"]
    assert set(tasks) == (set(TASKS) if some else set())
    expected = [[percent(m, test, p, h, t) for t in tasks] for test in config.tests for p, h, m in places]
    assert [row[4:] for row in rows[1:]] == expected, "of every test"


def test_what_is_empty_is_not_what_isnt_finished(results):
    """In tables and in figures; nothing is finished of the second model."""
    config = replace(PRESETS["smoke"], models=MODELS, pairs=(0.8,), hard_negatives=(1.0,), seeds=SEEDS)
    some = [r for r in results if (r["model"], r["pairs"], r["hard_negatives"]) == ("clip", 0.8, 1.0)]
    tests = list(config.tests)
    swaps = [(test, "swap") for test in tests]
    for figure in (bars(some, config, swaps), heat_maps(some, config, swaps[:1])):
        assert WAITING in {text.get_text() for axis in figure.axes for text in axis.texts}
    first, second = to_rows(summary(config, some))[1:]
    assert [first[3 + tests.index(name)] == DASH for name in ("different_bag", "seen_pairs")] == [True, False]
    assert set(second[3:]) == {WAITING}
    empty = heat_maps(some, config, [("different_bag", "swap")])
    assert [text.get_text() for axis in empty.axes for text in axis.texts] == [DASH, WAITING]


@pytest.mark.parametrize(("tests", "lines"), [(1, [1]), (3, [3]), (4, [2, 2]), (5, [3, 2])])
def test_panels_of_bars_fill_their_lines_evenly(tests, lines):
    names = [f"test {k}" for k in range(tests)]
    config = replace(PRESETS["smoke"], models=MODELS, pairs=(0.8,), hard_negatives=(1.0,), seeds=SEEDS)
    some = [result(model, seed, 0.8, 1.0, names) for model in MODELS for seed in range(SEEDS)]
    figure = bars(some, config, [(name, "swap") for name in names])
    heights = [axis.get_subplotspec().rowspan.start for axis in figure.axes if axis.axison]
    assert [heights.count(line) for line in sorted(set(heights))] == lines
    assert len({label.get_fontsize() for axis in figure.axes for label in axis.get_yticklabels()}) == 1


def test_many_models_on_many_benchmarks_are_one_table():
    benchmarks = [f"benchmark_{k}" for k in range(30)]
    results = [result(f"model {k}", seed, 1.0, 0.0, benchmarks) for k in range(8) for seed in range(3)]
    table = described(pivot(tidy(results), ["subset", "task"], ["model"]), deviations=True).reset_index()
    rows = to_rows(table)
    assert (len(rows), len(rows[0])) == (1 + 30 * len(TASKS), 2 + 8)
    text = to_latex(table, "All")
    assert text.count(" \\\\\n") == len(rows)
    assert r"benchmark\_29 & quad text & " in text


def test_latex_escapes_and_aligns():
    text = to_latex(pd.DataFrame([("oc-clip", "95.0"), ("clip & co", "–")], columns=["model", "a_b"]), "100 % sure")
    assert r"clip \& co & – \\" in text
    assert r"model & a\_b \\" in text
    assert r"\begin{tabular}{lr}" in text
    assert r"\caption{100 \% sure}" in text
    assert [text.count(rf"\{rule}rule") for rule in ("top", "mid", "bottom")] == [1, 1, 1]
    assert escape("{~^\\}") == r"\{\textasciitilde{}\^{}\textbackslash{}\}"


def test_columns_of_several_levels_have_a_header_of_as_many_lines(results):
    table = described(pivot(tidy(results), ["model"], ["subset", "task"])).reset_index()
    text = to_latex(table, "By subset and task")
    assert r"\multicolumn{3}{c}{unseen\_pairs}" in text
    assert to_rows(table)[0][:2] == ["model", "unseen_pairs: swap"]

"""Records and estimates: equal to means and bootstraps over predictions that are read by hand."""

import csv
import math
from collections import defaultdict

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.studies.analysis.intervals import accuracy_intervals, statistic_interval
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.layout import PartNumbers
from menagerie.studies.frame.parts import Table
from menagerie.studies.frame.records import Records, StoredCell, read, write_cells_and_results
from tests.studies.stored import TESTS, stored_grid


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return stored_grid(tmp_path_factory.mktemp("stored"))


def by_hand(records, model, share, subset, task="swap"):
    """Values of the records of a model at a place, by seed, animals, scene."""
    found = {}
    for seed in range(3):
        file = records.out / "cells" / f"{model}-{seed}-{share}-0.0" / "predictions.csv"
        with file.open(newline="") as text:
            for row in csv.DictReader(text):
                if (row["subset"], row["task"]) == (subset, task):
                    true, false = float(row["score_caption"]), float(row["score_negative"])
                    found[seed, row["animals"], row["scene"]] = (true > false) + 0.5 * (true == false)
    return found


def interval(values, signed=False):
    """Mean, low and high of values by seed, animals and scene."""
    groups = defaultdict(list)
    for (seed, animals, _), value in sorted(values.items()):
        groups[seed, animals].append(value)
    sums, counts = (np.array([[function(group)] for group in groups.values()], float) for function in (sum, len))
    table = sums, counts, *zip(*groups, strict=True)
    low, high = statistic_interval(lambda means: means[:, 0], *table) if signed else accuracy_intervals(*table)[:, 0]
    return sums.sum() / counts.sum(), low, high


def test_levels_and_differences_are_those_of_the_records(records):
    unseen = records.where(subset="unseen_pairs", task="swap")
    levels = unseen.estimates(("model", "pairs"))
    above = unseen.estimates(("model", "pairs"), against={"model": "clip"})
    assert list(levels) == [(model, share) for share in (0.2, 0.8) for model in ("clip", "oc-clip", "negclip")]
    assert list(above) == [key for key in levels if key[0] != "clip"]
    for (model, share), found in levels.items():
        mean, low, high = interval(values := by_hand(records, model, share, "unseen_pairs"))
        assert np.allclose([found.value, found.low, found.high], [mean, low, high], rtol=0, atol=1e-12)
        assert (found.n, found.clusters, found.seeds) == (len(values), 6, 3)
        means = [np.mean([v for k, v in values.items() if k[0] == seed]) for seed in range(3)]
        assert found.deviation == pytest.approx(np.std(means, ddof=1), abs=1e-12)
    for (model, share), found in above.items():
        first, second = (by_hand(records, name, share, "unseen_pairs") for name in ("clip", model))
        expected = interval({key: second[key] - first[key] for key in first}, signed=True)
        assert np.allclose([found.value, found.low, found.high], expected, rtol=0, atol=1e-12)
        assert str(found).startswith(f"{100 * found.value:+.1f} [")


def test_a_statistic_of_a_curve_is_of_all_its_points(records):
    def area(means):
        return means @ np.array([0.5, 0.5])

    unseen = records.where(subset="unseen_pairs", task="swap")
    found = unseen.estimates(("model", "pairs"), statistic=("pairs", area))
    assert list(found) == [("clip",), ("oc-clip",), ("negclip",)]
    sides = [by_hand(records, "clip", share, "unseen_pairs") for share in (0.2, 0.8)]
    groups = sorted({key[:2] for key in sides[0]})
    values = [[[v for k, v in side.items() if k[:2] == group] for side in sides] for group in groups]
    sums, counts = (np.array([[f(v) for v in row] for row in values], float) for f in (sum, len))
    assert (counts[:, 0] == counts[:, 1]).all()
    bounds = statistic_interval(area, sums, counts, *zip(*groups, strict=True))
    expected = [*area((sums.sum(0) / counts.sum(0))[None]), *bounds]
    assert np.allclose([found["clip",].value, found["clip",].low, found["clip",].high], expected, rtol=0, atol=1e-9)


def test_four_way_scores_have_means_over_runs_and_no_interval(records):
    found = records.where(subset="unseen_pairs").estimates(("model", "pairs", "task"))
    text_score = found["clip", 0.8, "text score"]
    assert (text_score.value, text_score.n, text_score.clusters) == (pytest.approx(0.37), 21, 0)
    assert math.isnan(text_score.low)
    assert {task for *_, task in found} == {"swap", "replace animal", "text score"}


def test_records_that_occur_twice_name_the_label_that_tells_them_apart(records):
    with pytest.raises(UserError, match="pairs"):
        records.where(task="swap").estimates(("model",), against={"model": "clip"})
    with pytest.raises(UserError, match="no run has a label 'views'"):
        records.where(views=3)
    with pytest.raises(UserError, match="no run has a label 'views'"):
        records.estimates(("views",))
    with pytest.raises(UserError, match="must be among `by`"):
        records.where(task="swap").estimates(("pairs",), against={"model": "clip"})


def test_a_tuple_is_a_value_where_labels_are_tuples(tmp_path):
    """Their column has them as text, "1+2"."""
    cell = StoredCell("", "clip", 0, ())
    records = Records(tuple(Arm(cell, {"objects": objects}) for objects in ((1, 2), (3,), (1, 2, 3))), tmp_path)
    for wanted, number in (((1, 2), 1), ("1+2", 1), ((3,), 1), (((1, 2), (3,)), 2), ({(1, 2), (3,)}, 2), ((1, 3), 0)):
        assert len(records.where(objects=wanted).arms) == number, wanted


def test_where_narrows_and_a_folder_is_read_back(records):
    chosen = records.where(model=("clip", "negclip"), pairs=0.2, task="swap", subset=TESTS)
    assert len(chosen.arms) == 6
    assert set(chosen.scores["subset"]) == set(TESTS)
    assert set(chosen.points["model"]) == {"clip", "negclip"}
    assert set(chosen.points["task"]) == {"swap"}
    write_cells_and_results(records)
    again = read(records.out)
    assert again.labels("pairs") == [0.2, 0.8]
    assert again.tests == TESTS
    sides = [side.estimates(("model", "subset", "task")) for side in (again, records)]
    assert sides[0].keys() == sides[1].keys()
    assert np.array_equal(*(np.array(list(side.values()), float) for side in sides), equal_nan=True)
    with (records.out / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(records.scores)
    assert list(rows[0])[:4] == ["model", "seed", "pairs", "hard_negatives"]


def test_narrowed_records_leave_out_runs_that_end_later(tmp_path):
    """A run that ends while a page is made isn't on it; it would lack the labels that finished runs get."""
    records = stored_grid(tmp_path)
    waiting, kept = tmp_path / "cells" / records.arms[0].id, tmp_path / "kept"
    waiting.rename(kept)
    labelled = records.with_labels(lambda arm, its: {"cost": 1})
    kept.rename(waiting)
    assert records.arms[0].id not in {arm.id for arm, _ in labelled.where(seed=0).results}
    assert not labelled.over(labelled.arms[0])
    assert labelled.score(labelled.arms[0]) is None
    again = Records(records.arms, records.out)
    assert len(again.results) == len(labelled.results) + 1 == len(records.arms)


def test_records_can_be_grouped_into_other_tests(records):
    """The scenes of each even animal pair are one test, those of pair 1 another, all others are left out."""
    swaps = records.where(task="swap", subset="unseen_pairs", model="clip", pairs=0.2)

    def group(arm):
        keys = swaps.where(lambda other: other.id == arm.id).points["scene"]
        return {
            key: "even" if int(key.split()[1]) % 2 == 0 else "one" for key in keys if int(key.split()[1]) in (0, 1, 2)
        }

    found = swaps.regroup(("one", "even"), group)
    values = by_hand(records, "clip", 0.2, "unseen_pairs")
    for test, pairs in (("one", {"pair 1"}), ("even", {"pair 0", "pair 2"})):
        wanted = [value for (_, animals, _), value in values.items() if animals in pairs]
        estimate = found.estimates(("model", "subset"))["clip", test]
        assert (estimate.value, estimate.n) == (pytest.approx(np.mean(wanted)), len(wanted))
        assert found.scores[found.scores.subset == test]["n"].sum() == len(wanted)
    assert set(found.points["subset"]) == {"one", "even"}
    table = PartNumbers(Table("by-pair", found, ("model",)), ("model", "subset"))
    assert table.keys(("subset",)) == [("one",), ("even",)]  # in the order that was given

"""Intervals of benchmarks' headlines, their mean over seeds, and the figure of many models on many benchmarks."""

import math

import numpy as np
import pytest

from menagerie.generators.benchmarks.benchmark import Item, Outcome, summarise
from menagerie.generators.benchmarks.photographs import macro, of_groups
from menagerie.studies.analysis.jackknife import intervals
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.scoring.levels import MOST_PANELS, MOST_ROWS, binomial, levels, over_seeds

RATES = {"few": 0.9, "many": 0.6}  # of the two groups, and their sizes
SIZES = {"few": 40, "many": 160}


def headlines(items, outcomes):
    return {"micro": summarise(outcomes), "macro": macro(list(of_groups(items, outcomes).values()))}


def drawn(random):
    """The intervals of one draw of records, whose clusters of two are alike."""
    groups = [group for group, size in SIZES.items() for _ in range(size)]
    items = [Item(str(k), group, (), (), str(k // 2)) for k, group in enumerate(groups)]
    values = [float(v) for item in items[::2] for v in [random.random() < RATES[item.group]] * 2]
    outcomes = [Outcome(value, value, False) for value in values]
    clusters = [item.cluster for item in items]
    return intervals(clusters, lambda of: headlines([items[k] for k in of], [outcomes[k] for k in of]))


def test_intervals_of_means_and_of_means_over_groups_hold_the_truth():
    """In about 95 of 100 draws, though records of a cluster resemble each other."""
    random = np.random.default_rng(0)
    truth = {"macro": 0.75, "micro": sum(RATES[g] * SIZES[g] for g in RATES) / sum(SIZES.values())}
    found = [drawn(random) for _ in range(300)]
    for name, value in truth.items():
        assert 0.90 < np.mean([its[name][0] <= value <= its[name][1] for its in found]) < 0.98


def test_few_or_equal_records_have_no_interval():
    def mean(of):
        return {"all": summarise([Outcome(float(k % 2), 0.5, False) for k in of])}

    assert intervals(range(4), mean) == {}
    assert mean(range(5)).keys() == intervals(range(5), mean).keys()
    assert intervals(range(40), lambda of: {"all": summarise([Outcome(1.0, 1.0, False) for _ in of])}) == {}


def test_a_share_of_independent_records_has_wilsons_interval():
    """Against the example of Wilson's interval for 7 of 10."""
    assert binomial(0.7, 10) == pytest.approx({"low": 0.3968, "high": 0.8922}, abs=1e-4)
    assert binomial(0.5, 4) == binomial(1.0, 40) == {"low": None, "high": None}


def level(value, half=0.02):
    return Estimate(value, value - half, value + half, 100, 100, 1, math.nan)


def test_seeds_widen_an_interval_that_all_share():
    one, two, three = (over_seeds([level(v) for v in values]) for values in ((0.5,), (0.5, 0.6), (0.4, 0.5, 0.6)))
    assert one == level(0.5)
    assert not two.known
    student = 4.3027 * 0.1 / math.sqrt(3)
    assert three.value == pytest.approx(0.5)
    assert three.high - three.value == pytest.approx(math.hypot(student, 0.02), rel=1e-4)
    assert over_seeds([level(0.5)] * 3).high == pytest.approx(0.52), "seeds that agree add nothing"


def test_many_models_on_many_benchmarks_are_limited_and_counted():
    found = {(f"benchmark {b}", f"model {m}"): level(0.5 + 0.01 * m) for b in range(30) for m in range(15)}
    part = levels(found, {})
    assert "Of 15 models the best 12" in part.says
    assert "Of 30 benchmarks the first 24" in part.says
    shown = [axis for axis in part.figure().axes if axis.axison]
    assert len(shown) == MOST_PANELS
    names = [text.get_text() for text in shown[0].get_yticklabels()]
    assert names == [f"model {m}" for m in range(14, 14 - MOST_ROWS, -1)]
    assert levels({}, {}).figure() is None

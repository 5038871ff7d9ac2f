"""Rank correlations, their intervals, and p values of several tests."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from menagerie.studies.measures.predictors import correlation, holm, spearman

RUNS = [k // 3 for k in range(30)]


@pytest.fixture
def rising():
    random = np.random.default_rng(0)
    x = random.integers(0, 8, 30)
    return x, x + random.integers(0, 6, 30)


def test_correlations_are_spearmans_with_ties(rising):
    its = correlation(*rising, RUNS)
    assert its.value == pytest.approx(spearmanr(*rising).statistic)
    assert its.low < its.value < its.high
    assert its.low > 0.5
    assert (its.n, its.seeds) == (30, 10)


def test_a_bootstrap_draw_is_the_correlation_of_the_rows_it_repeats(rising):
    weights = np.random.default_rng(1).integers(0, 3, (4, 30)).astype(float)
    found = spearman(*rising, weights, np.zeros(30, int))
    rows = [np.repeat(np.arange(30), times.astype(int)) for times in weights]
    assert found == pytest.approx([spearmanr(*(side[its] for side in rising)).statistic for its in rows])


def test_within_groups_only_what_differs_there_counts(rising):
    x, y = rising
    group = np.arange(30) % 5
    assert correlation(x + 100 * group, y - 300 * group, RUNS).value < -0.9
    within = correlation(x + 100 * group, y - 300 * group, RUNS, list(group))
    assert within.value > 0.5
    assert within.value == correlation(x, y, RUNS, list(group)).value
    assert np.isnan(correlation(x, y, RUNS, list(range(30))).value), "nothing is left of groups of one"


def test_cells_of_few_trainings_are_seldom_taken_for_correlated_by_chance():
    random, runs = np.random.default_rng(2), [k // 5 for k in range(45)]

    def drawn():
        return np.repeat(random.normal(size=9), 5) + random.normal(size=45)

    p = np.array([correlation(drawn(), drawn(), runs).p for _ in range(60)])
    assert np.mean(p < 0.05) < 0.12
    assert np.mean(p < 0.5) == pytest.approx(0.5, abs=0.2)


def test_a_perfect_order_has_no_interval_and_the_p_of_its_permutations():
    """Two of the 120 orders of five are as far from 0; of two and three equal values, one of ten pairs of them."""
    five = correlation(np.arange(5), np.arange(5) ** 2, range(5))
    assert five.value == 1
    assert not five.known
    assert "no spread" in str(five)
    assert five.p == pytest.approx(2 / 120)
    assert holm([five.p] * 3)[0] >= 0.05
    tied = np.array([0, 0, 0, 1, 1])
    assert correlation(tied, -tied, range(5)).p == pytest.approx(0.1)
    assert 0 < correlation(np.arange(40), -np.arange(40), range(40)).p < 0.001


def test_only_clusters_with_as_many_rows_in_the_same_groups_are_exchanged():
    """Of three and two, alone in their groups, 12 arrangements; 2 of them are in perfect order or the reverse."""
    groups = [0, 0, 0, 1, 1]
    x = np.array([0, 1, 2, 0, 1])
    assert correlation(x, x, range(5), groups).p == pytest.approx(2 / 12)
    unlike = [0, 0, 1, 1, 1, 2, 2, 2, 2, *[3] * 5, *[4] * 6]
    assert correlation(np.arange(20), np.arange(20), unlike).p == 1


@pytest.mark.parametrize("number", [5, 6])
def test_few_trainings_are_seldom_taken_for_correlated_by_chance(number):
    random = np.random.default_rng(number)
    p = np.array([correlation(*random.normal(size=(2, number)), range(number)).p for _ in range(300)])
    assert np.mean(p < 0.05) < 0.06
    assert np.mean(p < 0.05 / 3) < 0.05 / 3


def test_few_clusters_have_no_interval_and_a_constant_no_correlation(rising):
    its = correlation(*rising, [k // 10 for k in range(30)])
    assert np.isfinite(its.value)
    assert np.isnan([its.low, its.high, its.p]).all()
    assert "no interval" in str(its)
    assert np.isnan(correlation(np.ones(30), rising[1], RUNS).value)
    assert correlation(np.zeros(0), np.zeros(0), []).n == 0


@pytest.mark.parametrize(
    ("p", "corrected"),
    [
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.04, 0.01, 0.02, 0.03], [0.06, 0.04, 0.06, 0.06]),
        ([0.5, 0.9], [1.0, 1.0]),
        ([0.01, float("nan"), 0.02], [0.02, float("nan"), 0.02]),
    ],
)
def test_p_values_are_corrected_as_holm_does_by_hand(p, corrected):
    assert holm(p) == pytest.approx(corrected, nan_ok=True)

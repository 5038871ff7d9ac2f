"""Intervals for new seeds and animal pairs: how often they hold the truth in simulations, and values by hand."""

import numpy as np
import pytest
from scipy.stats import t

from menagerie.studies.analysis.intervals import (
    MANY_SHARED,
    Spread,
    accuracy_intervals,
    explain_intervals,
    is_for_own_pairs,
    resampled_means,
    statistic_interval,
    without_interval,
)
from tests.studies.coverage import RECORDS, Cell, covered, simulated

STUDIES = 800  # whose share has a deviation of about 1 %


@pytest.mark.parametrize(
    "cell",
    [
        Cell(False, 3, 6, 0.98, 0.8),
        Cell(False, 3, 60, 0.5, 0.4),
        Cell(False, 5, 12, 0.9, 1.2),
        Cell(True, 3, 20, 0.98, 0.8),
        Cell(True, 3, 60, 0.5, 0.8),
        Cell(True, 5, 60, 0.9, 1.2),
        Cell(True, 5, 60, 0.5, 0.8, seed_sd=0.0),
    ],
)
def test_intervals_hold_new_seeds_and_pairs(cell):
    """Also where all seeds have the same pairs, and near a ceiling; without being much wider than they have to be."""
    held, width = covered(cell, studies=STUDIES)
    assert held > 0.875
    assert width < 1.53
    assert "new animal pairs" in explain_intervals(cell.seeds)


@pytest.mark.parametrize(("seeds", "accuracy"), [(3, 0.5), (5, 0.5), (5, 0.98)])
def test_intervals_of_few_shared_pairs_hold_these_pairs_and_say_so(seeds, accuracy):
    cell = Cell(True, seeds, 6, accuracy, 0.8)
    assert covered(cell, studies=STUDIES)[0] > 0.9
    right, _, _ = simulated(cell, STUDIES)
    low, high = accuracy_intervals(right, np.full_like(right, RECORDS), *cell.names)
    assert np.mean((low <= accuracy) & (high >= accuracy)) < 0.9
    assert "for these pairs, not for new ones" in explain_intervals(seeds)


def test_seeds_that_share_some_of_their_pairs():
    """Three seeds draw 30 pairs each from 60; the truth is that of all possible pairs."""
    rng, seeds = np.random.default_rng(0), 3
    chosen = np.concatenate([rng.permutation(60)[:30] for _ in range(seeds)])
    owner = np.repeat(np.arange(seeds), 30)
    odds = rng.normal(0, 0.8, (60, STUDIES))[chosen] + rng.normal(0, 0.3, (seeds, STUDIES))[owner]
    right = rng.binomial(RECORDS, 1 / (1 + np.exp(-odds))).astype(float)
    low, high = accuracy_intervals(right, np.full_like(right, RECORDS), owner.tolist(), chosen.tolist())
    assert 0.885 < np.mean((low <= 0.5) & (high >= 0.5)) < 0.98
    alone = accuracy_intervals(right, np.full_like(right, RECORDS), owner.tolist(), list(range(len(owner))))
    assert np.mean(high - low) > np.mean(alone[1] - alone[0])


def test_one_seed_holds_new_pairs_and_no_other_seed():
    assert covered(Cell(False, 1, 12, 0.9, 0.8, seed_sd=0.0), studies=STUDIES)[0] > 0.9
    assert covered(Cell(False, 1, 60, 0.9, 0.8, seed_sd=0.6), studies=STUDIES)[0] < 0.7
    assert "not for new seeds" in explain_intervals(1)


def balanced(own):
    """Values of four seeds and 24 pairs that differ, as a table, and the names of clusters."""
    rng = np.random.default_rng(3)
    values = 0.6 + rng.normal(0, 0.1, (4, 1)) + rng.normal(0, 0.1, (1, 24)) + rng.normal(0, 0.05, (4, 24))
    pairs = np.arange(96) if own else np.tile(np.arange(24), 4)
    return values, np.repeat(np.arange(4), 24).tolist(), pairs.tolist()


def variance(values, seeds, pairs):
    rest = (values - values.mean()).reshape(-1, 1) / values.size
    return float(Spread.of(rest, np.ones_like(rest, bool), seeds, pairs).variance[0])


def test_the_variance_of_unshared_pairs_is_that_of_the_means_of_seeds():
    values, *names = balanced(own=True)
    assert variance(values, *names) == pytest.approx(values.mean(1).var(ddof=1) / 4)


def test_the_variance_of_shared_pairs_is_that_of_crossed_effects():
    """By the mean squares of an analysis of variance, but for a 24th of the variance of seeds."""
    values, *names = balanced(own=False)
    seed, pair = values.mean(1, keepdims=True), values.mean(0, keepdims=True)
    rest = ((values - seed - pair + values.mean()) ** 2).sum() / (3 * 23)
    expected = (24 * seed.var(ddof=1) + 4 * pair.var(ddof=1) - rest) / values.size
    assert variance(values, *names) == pytest.approx(expected, rel=0.05)


def test_seeds_alone_have_students_interval():
    """With its degrees of freedom: pairs add hardly anything."""
    means = np.array([0.5, 0.6, 0.8, 0.65, 0.7, 0.55])
    values = np.repeat(means, 20) + np.tile([0.001, -0.001], 60)
    table = values[:, None], np.ones((120, 1)), np.repeat(np.arange(6), 20).tolist(), list(range(120))
    half = t.ppf(0.975, 5) * means.std(ddof=1) / np.sqrt(6)
    assert statistic_interval(lambda its: its[:, 0], *table) == pytest.approx(
        (means.mean() - half, means.mean() + half), 1e-2
    )


def test_groups_of_unequal_clusters_keep_their_own_mean():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 9, (60, 3)).astype(float)
    counts[:, 2] = 0
    counts[7, 2] = 4
    sums = counts * rng.random((60, 1))
    names = list(np.repeat(["a", "b", "c"], 20)), list(range(60))
    low, high = accuracy_intervals(sums, counts, *names)
    whole = (sums.sum(0) / counts.sum(0))[:2]
    assert (low[:2] < whole).all()
    assert (high[:2] > whole).all()
    assert np.isnan([low[2], high[2]]).all()  # one cluster
    again = accuracy_intervals(sums[:, :1], counts[:, :1], *names)
    assert np.allclose(again[:, 0], [low[0], high[0]])  # whatever else is measured beside it


def two_groups(seeds, pairs, pair_sd, seed_sd, draw, gap=0.0):
    """Sums and numbers of two groups that share their pairs, of which some are hard. Each seed does each group some
    good."""
    rng = np.random.default_rng(draw)
    hard, own = rng.normal(0.7, pair_sd, (seeds, pairs, 1)), rng.normal(0, seed_sd, (seeds, 1, 2))
    values = hard + own + [0, gap] + rng.normal(0, 0.3 / np.sqrt(RECORDS), (seeds, pairs, 2))
    sums = RECORDS * values.reshape(seeds * pairs, 2)
    names = np.repeat(np.arange(seeds), pairs).tolist(), list(range(seeds * pairs))
    return sums, np.full_like(sums, RECORDS), *names


def gain(means):
    return means[:, 1] - means[:, 0]


@pytest.mark.parametrize(("seeds", "pairs", "seed_sd"), [(3, 60, 0.05), (5, 20, 0.05), (5, 20, 0.0)])
def test_hard_pairs_that_two_groups_share_hide_no_seeds(seeds, pairs, seed_sd):
    """The interval of the gap holds its truth, 0, though pairs differ far more than seeds do."""
    found = np.array([statistic_interval(gain, *two_groups(seeds, pairs, 0.3, seed_sd, draw)) for draw in range(200)])
    assert 0.86 <= np.mean((found[:, 0] <= 0) & (found[:, 1] >= 0)) <= 0.995


def test_gaps_of_accuracies_near_a_ceiling_hold_the_truth():
    """Of two models on the same records and the same pairs for all seeds, one right in 90 % and one in 98 %."""
    cells = [Cell(True, 5, 20, accuracy, 0.8) for accuracy in (0.9, 0.98)]
    both = np.stack([simulated(cell, 300, draw)[0] for draw, cell in enumerate(cells)], 2)
    counts = np.full((100, 2), float(RECORDS))
    found = np.array([statistic_interval(gain, both[:, k], counts, *cells[0].names) for k in range(300)])
    assert np.mean((found[:, 0] <= 0.08) & (found[:, 1] >= 0.08)) > 0.87


@pytest.mark.parametrize("draw", range(3))
def test_a_weighted_sum_of_groups_has_the_interval_of_its_own_clusters(draw):
    sums, counts, *names = two_groups(3, 20, 0.3, 0.05, draw)
    alone = sums[:, 1:] - sums[:, :1], counts[:, :1]
    assert statistic_interval(gain, sums, counts, *names) == pytest.approx(
        statistic_interval(lambda its: its[:, 0], *alone, *names)
    )


def test_a_statistic_that_is_no_weighted_sum_holds_its_truth():
    """The ratio of two means; the second is a fifth greater."""
    found = np.array(
        [
            statistic_interval(lambda means: means[:, 1] / means[:, 0], *two_groups(5, 20, 0.3, 0.05, draw, gap=0.14))
            for draw in range(200)
        ]
    )
    assert 0.88 <= np.mean((found[:, 0] <= 1.2) & (found[:, 1] >= 1.2)) <= 0.99


def test_draws_have_the_variance_of_intervals():
    sums, counts, *names = two_groups(5, 20, 0.3, 0.05, 0)
    low, high = np.quantile(resampled_means(sums, counts, *names)[:, 0], [0.025, 0.975])
    ends = statistic_interval(lambda means: means[:, 0], sums, counts, *names)
    assert (low, high) == pytest.approx(ends, abs=0.1 * (ends[1] - ends[0]))


def test_where_all_is_right_more_pairs_tell_more_and_none_is_certain():
    bounds = []
    for pairs in (6, 60):
        right, names = np.full((3 * pairs, 1), 16.0), Cell(False, 3, pairs, 0.98, 0.8).names
        low, high = accuracy_intervals(right, right, *names)[:, 0]
        assert low < 0.998
        assert high == 1
        assert tuple(accuracy_intervals(0 * right, right, *names)[:, 0]) == pytest.approx((0, 1 - low))
        assert statistic_interval(gain, np.hstack([right, right]), np.hstack([right, right]), *names) == (0, 0)
        bounds.append(low)
    assert bounds[0] < bounds[1]


def test_few_pairs_that_seeds_share_are_fixed_and_few_seeds_or_pairs_are_named():
    for cell in (Cell(True, 3, 6, 0.9, 0.8), Cell(False, 3, 6, 0.9, 0.8), Cell(True, 3, MANY_SHARED, 0.9, 0.8)):
        seeds, pairs = cell.names
        assert is_for_own_pairs(np.ones((len(seeds), 1)), pairs) == cell.of_these
    for pairs, seeds, reason in ((30, 2, "2 seeds"), (30, 3, ""), (4, 2, "4 pairs")):
        text = without_interval(np.nan, np.nan, pairs, seeds)
        assert reason in text
        assert ("seeds" in text) == (reason == "2 seeds")

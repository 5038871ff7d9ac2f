"""How often intervals of shares of the variance hold the true share, simulated: effects, runs that differ, pairs that
differ."""

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.studies.analysis.factorial import design, effects, share_of, true_shares
from menagerie.studies.frame.contrasts import shares
from menagerie.studies.frame.records import Records
from tests.command import ROOT

FACTORS, TRIALS, RECORDS = ("loss", "fusion", "tokens"), 200, 20
EVERY = list(effects(FACTORS, 3))
SIGNS = np.array(design(3))
COLUMNS = np.stack([SIGNS[:, [FACTORS.index(name) for name in effect]].prod(1) for effect in EVERY], 1)
ASKED = [*([k] for k in range(7)), [3, 4, 5, 6]]  # single effects, and all interactions
ONE = (0, 0, 0.1, 0, 0, 0, 0)
TWO = (0, 0, 0.1, 0.03, 0, 0, 0)
SEVERAL = (-0.017, -0.061, 0.152, 0.067, 0.004, -0.03, 0.063)
EQUAL = (0.06,) * 7


def simulated(rng, truth, seeds, pairs, run_sd, tokens_sd=0.0):
    """Each cluster's differences of the seven effects. Seeds and pairs have noise that all eight runs share, which
    counts for nothing; `tokens_sd` is how much the effect of tokens differs between seeds."""
    means = 0.6 + COLUMNS @ truth / 2 + rng.normal(0, 0.1, (seeds, pairs, 1))
    runs = rng.normal(0, run_sd, (seeds, 1, 8)) + rng.normal(0, tokens_sd, (seeds, 1, 1)) * SIGNS[:, 2] / 2
    values = (
        means + runs + rng.normal(0, 0.05, (seeds, pairs, 8)) + rng.normal(0, 0.5 / RECORDS**0.5, (seeds, pairs, 8))
    )
    sums = RECORDS * (values @ COLUMNS / 4).reshape(seeds * pairs, 7)
    return sums, np.full_like(sums, RECORDS), np.repeat(np.arange(seeds), pairs).tolist()


def found(truth, *sizes, **deviations):
    """Value, low and high of each trial and set of effects, without the trials that give none; and how many give."""
    rng = np.random.default_rng(0)
    its = np.array([true_shares(*simulated(rng, np.array(truth), *sizes, **deviations), ASKED) for _ in range(TRIALS)])
    given = ~np.isnan(its[:, 0, 0])
    assert np.isnan(its[~given]).all()
    return its[given], float(given.mean())


@pytest.mark.parametrize(
    ("truth", "sizes", "deviations"),
    [
        (SEVERAL, (5, 6, 0.05), {}),
        (SEVERAL, (3, 6, 0.05), {}),
        (SEVERAL, (5, 4, 0.01), {}),
        (SEVERAL, (3, 12, 0.02), {}),
        (SEVERAL, (5, 6, 0.05), {"tokens_sd": 0.08}),
        (SEVERAL, (1, 20, 0.0), {}),
        (ONE, (5, 6, 0.03), {}),
        (ONE, (5, 12, 0.05), {}),
        (ONE, (3, 12, 0.02), {}),
        (TWO, (5, 6, 0.03), {}),
        (TWO, (5, 6, 0.06), {}),
        (EQUAL, (5, 6, 0.06), {}),
        (EQUAL, (3, 6, 0.05), {}),
    ],
)
def test_intervals_of_shares_hold_the_true_share(truth, sizes, deviations):
    its, given = found(truth, *sizes, **deviations)
    true = np.array([sum(truth[k] ** 2 for k in some) for some in ASKED]) / sum(each**2 for each in truth)
    held = ((its[:, 1] <= true + 1e-9) & (its[:, 2] >= true - 1e-9)).mean(0)
    assert given > 0.4
    assert held.min() > 0.88
    assert held.mean() > 0.92
    assert ((its[:, 1] <= its[:, 0] + 1e-9) & (its[:, 0] <= its[:, 2] + 1e-9)).mean() > 0.99


def test_the_largest_share_is_not_pushed_down_nor_is_a_missing_one_raised():
    its, _ = found(SEVERAL, 5, 6, 0.05)
    assert its[:, 0, 2].mean() == pytest.approx(0.63, abs=0.03)
    its, _ = found(ONE, 5, 6, 0.03)
    assert its[:, 0, 2].mean() > 0.9
    assert its[:, 0, 3].mean() < 0.03
    assert np.median(its[:, 2, 3]) > 0.1  # which isn't because intervals have no width


@pytest.mark.parametrize("sizes", [(5, 6, 0.03), (5, 12, 0.06), (3, 6, 0.05), (3, 12, 0.02), (1, 12, 0.0)])
def test_where_nothing_has_an_effect_there_are_hardly_ever_shares(sizes):
    assert found((0,) * 7, *sizes)[1] < 0.07


@pytest.mark.parametrize("sizes", [(2, 12, 0.05), (1, 4, 0.0)])
def test_too_few_seeds_or_pairs_give_no_share(sizes):
    assert found(EQUAL, *sizes)[1] == 0


@pytest.mark.parametrize("factors", [3, 4])
def test_shares_without_noise_are_those_of_the_variance_between_the_runs(factors):
    """The contrasts of all effects are orthogonal, so that their squares add up to the variance."""
    names, rng = "abcd"[:factors], np.random.default_rng(0)
    signs, runs = np.array(design(factors)), rng.normal(size=2**factors)
    every = list(effects(names, factors))
    columns = np.stack([signs[:, [names.index(name) for name in each]].prod(1) for each in every], 1)
    sums = np.tile(runs @ columns * 2 / len(runs), (6, 1))
    value, low, high = true_shares(sums, np.ones_like(sums), [0, 0, 1, 1, 2, 2], [[k] for k in range(len(every))])
    fitted = columns * (runs @ columns / len(runs))
    assert value == pytest.approx((fitted**2).mean(0) / runs.var())
    assert (low, high) == (pytest.approx(value), pytest.approx(value))
    assert value.sum() == pytest.approx(1)


def test_shares_of_true_squares_add_up_and_sums_below_0_count_as_0():
    squares = np.array([[4.0, 1.0, 5.0], [4.0, -1.0, -1.0], [-1.0, 0.0, 2.0], [-1.0, 0.0, 0.0]])
    one, rest = share_of(squares, [0]), share_of(squares, [1, 2])
    assert np.array_equal(one, [0.4, 1.0, 0.0, np.nan], equal_nan=True)
    assert np.array_equal(rest, 1 - one, equal_nan=True)


def test_more_factors_than_have_all_combinations_run_are_refused():
    levels = {name: (0, 1) for name in "abcde"}
    with pytest.raises(UserError, match="at most 4 factors, got 5: a, b, c, d, e"):
        shares(Records((), ROOT), levels, "split")

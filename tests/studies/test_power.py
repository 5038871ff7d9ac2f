"""The smallest difference that a study would decide, checked by simulated studies."""

import math
from functools import cache

import numpy as np
import pytest

from menagerie.studies.analysis import intervals
from menagerie.studies.analysis.intervals import statistic_interval
from menagerie.studies.analysis.power import Deviations, deviations_of, planned_clusters, smallest_decided

OF = Deviations(0.05, 0.1, 0.15)


def names(seeds, pairs, shared):
    of_seed, of_pair = np.repeat(np.arange(seeds), pairs), np.tile(np.arange(pairs), seeds)
    return tuple(of_seed.tolist()), tuple((of_pair if shared else of_pair + of_seed * pairs).tolist())


@pytest.mark.parametrize(("seeds", "pairs", "shared"), [(3, 8, False), (5, 12, False), (3, 24, True), (1, 12, False)])
def test_studies_with_that_effect_are_decided_in_80_of_100(seeds, pairs, shared, monkeypatch):
    monkeypatch.setattr(intervals, "membership", cache(intervals.membership))  # all studies have the same names
    both = names(seeds, pairs, shared)
    of, counts = OF._replace(seed=OF.seed * (seeds > 1)), np.full(seeds * pairs, 16.0)
    values = of.draw(*both, np.random.default_rng(5)) + smallest_decided(of, counts, *both)
    lows = [statistic_interval(mean, 16 * one[:, None], counts[:, None], *both)[0] for one in values.T]
    assert len(lows) == 2000
    assert 0.77 <= np.mean(np.array(lows) > 0) <= 0.83


def mean(means):
    return means[:, 0]


@pytest.mark.parametrize("shared", [False, True])
def test_deviations_are_found_again(shared):
    both = names(8, 40, shared)
    found = np.mean([deviations_of(one, *both) for one in OF.draw(*both, np.random.default_rng(1)).T[:200]], 0)
    expected = OF if shared else (OF.seed, 0, math.hypot(OF.pair, OF.rest))
    assert found == pytest.approx(expected, abs=0.01)


def test_more_seeds_decide_smaller_differences():
    both = names(3, 12, False)
    found = []
    for planned in (3, 5, 10):
        chosen, *names_planned = planned_clusters(*both, planned)
        assert len({*names_planned[0]}) == planned
        assert len(chosen) == 12 * planned
        found.append(smallest_decided(OF, np.full(len(chosen), 16.0), *names_planned))
    assert found == sorted(found, reverse=True)
    assert found[0] > 1.5 * found[2]


def test_it_is_unknown_where_studies_have_no_interval():
    assert math.isnan(smallest_decided(OF, np.full(8, 16.0), *names(2, 4, False)))
    assert math.isnan(smallest_decided(OF, np.full(4, 16.0), *names(1, 4, False)))

"""Which items a batch has: the same bytes as ever, and of large data any part at the cost of that part."""

import pickle
from hashlib import sha256

import numpy as np
import pytest

from menagerie.models.training import sampling
from menagerie.models.training.sampling import Permutation, Stream, by_shares, with_singles

SINGLE = np.arange(300) % 3 == 0


def letters(parts):
    return sha256(np.concatenate(parts).astype("<i8").tobytes()).hexdigest()[:16]


def test_streams_keep_their_draws():
    assert Stream(np.arange(7), 1, "all").take(0, 20).tolist() == [
        *(1, 5, 0, 4, 6, 2, 3),
        *(2, 5, 3, 1, 6, 0, 4),
        *(2, 4, 0, 6, 1, 5),
    ]
    assert Stream(3, 0, "all").take(2, 11).tolist() == [2, 1, 0, 2, 2, 0, 1, 0, 2, 1, 0]
    jumping = Stream(np.arange(1000) * 3, 5, "pairs")
    assert letters([jumping.take(k * 64, 64) for k in (0, 1, 2, 14, 15, 16, 40, 3)]) == "d64e021d9e7203e6"


@pytest.mark.parametrize("shuffle", [None, "feistel"])
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda how: with_singles(SINGLE, 16, 0.25, 3, 5, how), "408ea10a493a14e4"),
        (lambda how: with_singles(SINGLE, 16, None, 3, 5, how), "6439cf2ddfbc3034"),
        (lambda how: by_shares({"a": SINGLE, "b": ~SINGLE}, {"a": 0.3, "b": 0.7}, 16, 4, how), "bba832b775f61d1a"),
    ],
)
def test_samplers_keep_their_draws(make, expected, shuffle):
    """Of data of this size also where another shuffle of large data is asked for."""
    sampler = make(shuffle)
    assert letters([sampler.indices(step) for step in range(60)]) == expected


def test_order_of_a_pass_is_computed_once_and_not_pickled(monkeypatch):
    real, made = np.random.default_rng, []
    monkeypatch.setattr(np.random, "default_rng", lambda seed: made.append(seed) or real(seed))
    stream = Stream(100, 0, "all")
    batches = [stream.take(k * 10, 10) for k in range(25)]
    assert len(made) == 3
    assert len(pickle.dumps(stream)) < 500  # a loader computes its own
    again = pickle.loads(pickle.dumps(stream))
    assert [again.take(k * 10, 10).tolist() for k in (24, 0)] == [batches[24].tolist(), batches[0].tolist()]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17, 64, 65, 1000, 4097, 65_537])
def test_a_permutation_has_each_number_once(size):
    for seed in (0, 12345, 2**63 - 1):
        assert np.array_equal(np.sort(Permutation(size, seed)(np.arange(size))), np.arange(size))


def test_permutations_look_random():
    size, draws, bins = 1000, 2000, 20
    first = np.array([Permutation(size, seed)(np.array([0]))[0] for seed in range(draws)])
    counts, expected = np.bincount(first * bins // size, minlength=bins), draws / bins
    assert ((counts - expected) ** 2 / expected).sum() < 44  # chi-squared, 19 degrees of freedom, p = 0.001
    order = Permutation(100_003, 7)(np.arange(100_003))
    for one, other in ((np.arange(len(order)), order), (order[:-1], order[1:])):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.01
    assert (np.diff(order) > 0).mean() == pytest.approx(0.5, abs=0.01)


def test_large_streams_contain_each_item_once_per_pass_and_read_from_anywhere(monkeypatch):
    monkeypatch.setattr(sampling, "LARGE", 50)
    stream, size = Stream(np.arange(101) * 2, 3, "all", "feistel"), 101
    whole = stream.take(0, 3 * size)
    assert [sorted(whole[k * size : (k + 1) * size]) for k in range(3)] == [list(range(0, 2 * size, 2))] * 3
    orders = whole[:size].tolist(), whole[size : 2 * size].tolist(), Stream(size, 3, "all").take(0, size).tolist()
    assert orders[0] != orders[1] != orders[2]
    assert all(np.array_equal(stream.take(k, 7), whole[k : k + 7]) for k in (0, 98, 200))
    assert stream._kept is None

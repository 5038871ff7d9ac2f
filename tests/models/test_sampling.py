"""Which items a batch has: the same bytes as ever, and of large data any part at the cost of that part."""

import pickle
from hashlib import sha256

import numpy as np
import pytest

from menagerie.models.training.sampling import Stream, by_shares, with_singles

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


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: with_singles(SINGLE, 16, 0.25, 3, 5), "408ea10a493a14e4"),
        (lambda: with_singles(SINGLE, 16, None, 3, 5), "6439cf2ddfbc3034"),
        (lambda: by_shares({"a": SINGLE, "b": ~SINGLE}, {"a": 0.3, "b": 0.7}, 16, 4), "bba832b775f61d1a"),
    ],
)
def test_samplers_keep_their_draws(make, expected):
    sampler = make()
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

"""Paired differences and their intervals."""

import numpy as np
import pandas as pd
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.studies.analysis.errors import read_predictions
from menagerie.studies.frame.estimate import estimates, points_in

COLUMNS = ("subset", "task", "scene", "animals", "caption", "negative", "score_caption", "score_negative")


def points(right, per_pair=1):
    """Records that are right or not, so many of each animal pair."""
    rows = [
        (0, "unseen_pairs", "swap", f"scene {i}", "a cat", f"pair {i // per_pair}", float(r))
        for i, r in enumerate(right)
    ]
    return pd.DataFrame(rows, columns=["seed", "subset", "task", "scene", "caption", "animals", "value"])


def difference(first, second):
    """How far the second is above the first."""
    both = pd.concat([first.assign(model="first"), second.assign(model="second")], ignore_index=True)
    return estimates(both, ("model",), against={"model": "first"}).get(("second",))


def test_the_interval_covers_the_true_difference_about_as_often_as_it_says():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(60):
        first, second = rng.random(150) < 0.5, rng.random(150) < 0.8
        delta = difference(points(first), points(second))
        assert delta.low < delta.value < delta.high
        covered += delta.low <= 0.3 <= delta.high
        assert 0.15 < delta.high - delta.low < 0.3
    assert covered >= 51


def test_records_of_one_animal_pair_count_as_one():
    """Ten copies of every record say nothing new; as if they did, the interval would be a third as wide."""
    rng = np.random.default_rng(0)
    first, second = rng.random(60) < 0.5, rng.random(60) < 0.8
    once = difference(points(first), points(second))
    copies = [points(np.repeat(side, 10), per_pair=10) for side in (first, second)]
    clustered = difference(*copies)
    naive = difference(*(points(np.repeat(side, 10)) for side in (first, second)))
    assert clustered.n == 600
    assert clustered.high - clustered.low == pytest.approx(once.high - once.low, rel=0.15)
    assert naive.high - naive.low < 0.5 * (once.high - once.low)
    lone = difference(*(points(side, per_pair=100) for side in (first, second)))
    assert str(lone).endswith("[one animal pair: no interval]")


def test_pairing_narrows_the_interval():
    rng = np.random.default_rng(0)
    first = rng.random(300) < 0.5
    second = first | (rng.random(300) < 0.1)  # right wherever the first is
    delta = difference(points(first), points(second))
    shuffled = difference(points(first), points(rng.permutation(second)))
    assert delta.low > 0
    assert delta.high - delta.low < 0.6 * (shuffled.high - shuffled.low)


def test_only_common_records_count():
    delta = difference(points([1, 0, 1]), points([1, 1]))
    assert (delta.n, delta.value) == (2, 0.5)
    same = difference(points([1, 0, 1]), points([1, 0, 1]))
    assert (same.value, str(same)) == (0, "+0.0 [only 3 pairs: no interval]")


def test_points_are_read_from_predictions(tmp_path):
    rows = [
        ("s", "swap", f"scene {i}", "cat + pig", "a", "b", *scores) for i, scores in enumerate(((2, 1), (1, 2), (1, 1)))
    ]
    pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(tmp_path / "predictions.csv", index=False)
    assert list(points_in(tmp_path).value) == [1, 0, 0.5]
    with (tmp_path / "predictions.csv").open("a") as file:
        file.write("s,swap,scene 3,cat + pig,a,b,high,low\n")
    with pytest.raises(UserError, match="can't be read"):
        read_predictions(tmp_path)
    with pytest.raises(UserError, match=r"none/predictions.csv can't be read"):
        read_predictions(tmp_path / "none")


@pytest.mark.parametrize(
    ("pairs", "said"), [(1, " [one animal pair: no interval]"), (4, " [only 4 pairs: no interval]"), (5, "]")]
)
def test_few_pairs_have_no_interval(pairs, said):
    rng = np.random.default_rng(0)
    first, second = (points(rng.random(40) < share, per_pair=40 // pairs) for share in (0.4, 0.8))
    text = str(difference(first, second))
    assert text.endswith(said)
    assert ("no interval" in text) == (pairs < 5)


def test_pairs_that_are_all_alike_have_no_interval():
    """Which would look like perfect certainty, and confirm a claim."""
    none, all_right = (points([value] * 40, per_pair=4) for value in (0, 1))
    assert str(difference(none, none)) == "+0.0 [no spread: no interval]"
    sure = difference(none, all_right)
    assert str(sure) == "+100.0 [no spread: no interval]"
    assert not sure.conclusive

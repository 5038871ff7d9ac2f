"""Paired differences and statistics of groups, with their intervals."""

import numpy as np
import pandas as pd
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.studies.analysis.errors import read_predictions
from menagerie.studies.frame.estimate import compare_groups, contrast, estimates, points_in, without_records
from menagerie.studies.measures.robustness import (
    effective_robustness,
    gain,
    gain_from,
    jump_along,
    slope_along,
)

COLUMNS = ("subset", "task", "scene", "animals", "caption", "negative", "score_caption", "score_negative")


def points(right, per_pair=1):
    """Records that are right or wrong, `per_pair` of each animal pair."""
    rows = [
        (0, "unseen_pairs", "swap", f"scene {i}", "a cat", f"pair {i // per_pair}", float(r))
        for i, r in enumerate(right)
    ]
    return pd.DataFrame(rows, columns=["seed", "subset", "task", "scene", "caption", "animals", "value"])


def difference(first, second):
    """The estimated difference of the second from the first."""
    both = pd.concat([first.assign(model="first"), second.assign(model="second")], ignore_index=True)
    return estimates(both, ("model",), against={"model": "first"}).get(("second",))


def test_records_of_an_animal_pair_are_not_independent():
    """Ten copies of each record add nothing; taken as independent, they make the interval a third as wide."""
    rng = np.random.default_rng(0)
    first, second = rng.random(60) < 0.5, rng.random(60) < 0.8
    once = difference(points(first), points(second))
    copies = [points(np.repeat(side, 10), per_pair=10) for side in (first, second)]
    clustered = difference(*copies)
    naive = difference(*(points(np.repeat(side, 10)) for side in (first, second)))
    assert clustered.n == 600
    assert clustered.high - clustered.low == pytest.approx(once.high - once.low, rel=0.15)
    assert naive.high - naive.low < 0.5 * (once.high - once.low)


def test_pairing_narrows_the_interval():
    rng = np.random.default_rng(0)
    first = rng.random(300) < 0.5
    second = first | (rng.random(300) < 0.1)  # right wherever the first is
    delta = difference(points(first), points(second))
    shuffled = difference(points(first), points(rng.permutation(second)))
    assert delta.low > 0
    assert delta.high - delta.low < 0.6 * (shuffled.high - shuffled.low)


def test_only_common_pairs_count():
    delta = difference(points([1, 0, 1]), points([1, 1]))
    assert (delta.n, delta.value) == (2, 0.5)
    same = difference(points([1, 0, 1]), points([1, 0, 1]))
    assert (same.value, str(same)) == (0, "+0.0 [only 3 pairs: no interval]")


def test_differences_are_over_all_records_of_common_pairs():
    """One side mentions the right object first in 4 of 10 captions, and is worse there; the other never does."""
    rng, first, second = np.random.default_rng(0), [], []
    for pair in range(30):
        for k in range(10):
            place = 0, "unseen_pairs", "swap", f"scene {pair} {k}", f"pair {pair}"
            first.append((*place, "right" if k < 4 else "left", float(rng.random() < (0.6 if k < 4 else 0.9))))
            second.append((*place, "left", float(rng.random() < 0.9)))
    columns = ["seed", "subset", "task", "scene", "animals", "caption", "value"]
    first, second = (pd.DataFrame(side, columns=columns) for side in (first, second))
    delta = difference(first, second)
    assert delta.n == 300
    assert delta.value == pytest.approx(second.value.mean() - first.value.mean())
    none = difference(first, second.assign(caption="other words"))
    assert (none.value, none.low, none.high) == (delta.value, delta.low, delta.high)
    same = difference(first, first.assign(caption="left"))
    assert (same.value, same.low, same.high) == (0, 0, 0), "equal sums differ by 0, not by rounding"


def seeds_of(means, pairs=12, records=10):
    """Records of seeds with given accuracies, the same for the same seed."""
    made = [points(np.random.default_rng(seed).random(pairs * records) < mean, records) for seed, mean in means.items()]
    return pd.concat([part.assign(seed=seed) for seed, part in zip(means, made, strict=True)], ignore_index=True)


def test_groups_are_compared_over_common_seeds():
    every = seeds_of({0: 0.55, 1: 0.9, 2: 0.9, 3: 0.9, 4: 0.9})
    without = every[every.seed > 0]
    for its in (contrast([every, without], gain, signed=True), compare_groups(every, without)[2]):
        assert (its.value, its.seeds) == (0, 4)
    assert contrast([every[every.seed == 0], without], gain) is None
    both = pd.concat([every.assign(x=0), without.assign(x=1)])
    assert estimates(both, ("x",), statistic=("x", gain))[()].value == 0
    assert not estimates(both[(both.seed > 0) ^ (both.x == 0)], ("x",), statistic=("x", gain))


def test_statistics_stay_in_the_range_that_accuracies_allow():
    its = contrast([seeds_of({0: 1.0, 1: 1.0, 2: 0.6}, records=20), seeds_of(dict.fromkeys(range(3), 0.0))], gain)
    assert its.low == -1 < its.value < its.high
    wild = np.array([[1.4, -0.3, 1.5, -0.2]])
    assert gain(wild[:, :2]) == -1
    assert gain_from((0.2, 0.5))(np.array([[0.6, 0.75], [-9, 9], [9, -9]])) == pytest.approx([0, 1.25, -2])
    assert abs(effective_robustness(1)(np.array([[0.5, -2.0, 0.4, 0.6, 0.5, 0.7]]))) <= 1
    for statistic, steepest in (
        (slope_along([0.0, 1.0, 2.0, 3.0]), [0.0, 0.0, 1.0, 1.0]),
        (jump_along([0.2, 0.3, 0.4, 0.5]), [1.0, 0.0, 1.0, 0.0]),
    ):
        most = statistic(np.array([steepest]))
        assert statistic(3 * np.array([steepest]) - 1) == pytest.approx(most)
        assert most > statistic(np.array([steepest]) / 2) > 0


def test_a_group_with_few_pairs_or_seeds_leaves_no_interval():
    every = seeds_of(dict.fromkeys(range(5), 0.8))
    few = every[every.animals.isin([f"pair {k}" for k in range(4)])]
    for its in (contrast([every, few], gain, signed=True), compare_groups(every, few)[2]):
        assert its.bounds == "only 4 pairs: no interval"
    two = every[every.seed < 2]
    assert contrast([every, two], gain).bounds == compare_groups(every, two)[2].bounds == "only 2 seeds: no interval"


def test_accuracies_without_records_are_weighted_by_their_number():
    scores = pd.DataFrame({"subset": ["a", "b"] * 2, "seed": [0, 0, 1, 1], "n": [10, 90, 10, 40]})
    (its,) = without_records(scores.assign(task="text score", accuracy=[1.0, 0.0, 1.0, 0.5]), ("task",)).values()
    assert (its.value, its.n, its.seeds) == (pytest.approx(40 / 150), 150, 2)
    assert its.deviation == pytest.approx(np.std([0.1, 0.6], ddof=1))


def test_points_are_read_from_predictions(tmp_path):
    both = enumerate(((2, 1), (1, 2), (1, 1)))
    rows = [("s", "swap", f"scene {i}", "cat + pig", "a", "b", *scores) for i, scores in both]
    pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(tmp_path / "predictions.csv", index=False)
    assert list(points_in(tmp_path).value) == [1, 0, 0.5]
    with (tmp_path / "predictions.csv").open("a") as file:
        file.write("s,swap,scene 3,cat + pig,a,b,high,low\n")
    with pytest.raises(UserError, match="can't be read"):
        read_predictions(tmp_path)
    with pytest.raises(UserError, match=r"none/predictions.csv can't be read"):
        read_predictions(tmp_path / "none")


@pytest.mark.parametrize("pairs", [1, 4, 5])
def test_fewer_than_five_pairs_have_no_interval(pairs):
    rng = np.random.default_rng(0)
    first, second = (points(rng.random(40) < share, per_pair=40 // pairs) for share in (0.4, 0.8))
    assert ("no interval" in str(difference(first, second))) == (pairs < 5)


def test_equal_pairs_have_no_interval_and_confirm_nothing():
    none, all_right = (points([value] * 40, per_pair=4) for value in (0, 1))
    assert str(difference(none, none)) == "+0.0 [no spread: no interval]"
    sure = difference(none, all_right)
    assert str(sure) == "+100.0 [no spread: no interval]"
    assert not sure.conclusive, "it would look like perfect certainty, and confirm a claim"

"""Fronts, hypervolumes and bounds, on values that can be checked by hand."""

import math

import numpy as np
import pytest

from studies.analysis.pareto import Axis, Bound, Curve, bound, front, hypervolume, median_accuracy, ratio, volumes
from studies.sample_search.tables import compared

AXIS = Axis(100, 10_000)


def volume(images, accuracy):
    return float(hypervolume(np.array(images, float), np.array(accuracy), AXIS))


def test_a_front_is_what_nothing_beats():
    images, accuracy = [500, 100, 900, 300, 100, 700], [0.8, 0.6, 0.9, 0.8, 0.55, 0.7]
    assert [images[k] for k in front(images, accuracy)] == [100, 300, 900]
    assert front([5], [0.5]) == [0]
    assert front([], []) == []


@pytest.mark.parametrize(
    ("images", "accuracy", "expected"),
    [
        ([100], [1.0], 1.0),
        ([100], [0.75], 0.5),
        ([1000], [1.0], 0.5),  # half the way on a logarithmic axis
        ([1000, 100], [1.0, 0.75], 0.75),
        ([100, 1000], [0.75, 0.6], 0.5),  # the second is worse on the test than the first
        ([10_000], [1.0], 0.0),  # on the edge of the reference point
        ([100], [0.4], 0.0),  # below chance
    ],
)
def test_hypervolume(images, accuracy, expected):
    assert volume(images, accuracy) == pytest.approx(expected)


def curve(images, *shares):
    """Two seeds of ten animal pairs of four records; of each pair the share is right."""
    tests = [[{f"pair {p}": [4 * share, 4] for p in range(10)} for _ in range(2)] for share in shares]
    return Curve(list(images), tests)


def test_without_spread_an_interval_is_its_value():
    computed = volumes({"a": curve([100], 0.75), "b": curve([1000, 100], 1.0, 0.75)}, AXIS)
    assert [tuple(map(float, v[:3])) for v in computed.values()] == [
        pytest.approx((0.5, 0.5, 0.5)),
        pytest.approx((0.75, 0.75, 0.75)),
        pytest.approx((0.25, 0.25, 0.25)),
    ]
    assert list(computed) == ["a", "b", "b − a"]


def test_models_are_resampled_together():
    """Both fail on the same pairs: each is unsure, their difference is not."""
    rng = np.random.default_rng(0)
    hard = [{f"pair {p}": [4.0 * right, 4] for p, right in enumerate(rng.random(20) < 0.8)} for _ in range(3)]
    computed = volumes({"a": Curve([1000], [hard]), "b": Curve([100], [hard])}, AXIS)
    assert computed["a"].high - computed["a"].low > 0.1
    twice = {"a": Curve([1000], [hard]), "b": Curve([1000], [hard])}
    assert volumes(twice, AXIS)["b − a"][:3] == (0, 0, 0)
    assert computed["b"].value == pytest.approx(2 * computed["a"].value)


def test_a_lucky_seed_does_not_win():
    tests = [{"pair": [points, 10]} for points in (5, 10, 6)]
    assert median_accuracy(tests) == pytest.approx(0.6)


def test_a_model_that_never_reaches_the_target_has_a_lower_bound():
    assert bound([300, 100, 200], [True, False, True]) == Bound(200, False)
    assert bound([300, 100, 200], [False] * 3) == Bound(300, True)
    assert str(Bound(300, True)) == "> 300"


@pytest.mark.parametrize(
    ("clip", "oc_clip", "text"),
    [
        (Bound(300, False), Bound(100, False), "3.00"),
        (Bound(300, True), Bound(100, False), "> 3.00"),
        (Bound(300, False), Bound(600, True), "< 0.50"),
        (Bound(300, True), Bound(300, True), "–"),
    ],
)
def test_ratios_say_what_is_unknown(clip, oc_clip, text):
    assert ratio(clip, oc_clip) == text


@pytest.mark.parametrize(
    ("clip", "other", "text"),
    [
        (
            Bound(30, False),
            Bound(10, False),
            "a reached the target with 30 images, b with 10: a needs 3.00 times as many",
        ),
        (
            *(Bound(30, True), Bound(10, False)),
            "b reached the target with 10 images, a not even with 30: a needs more than 3.00 times as many",
        ),
        (
            *(Bound(80, False), Bound(112, True)),
            "a reached the target with 80 images, b not even with 112: a needs less than 0.71 times as many",
        ),
        (Bound(30, True), Bound(20, True), "neither reached the target, a with up to 30 images and b with up to 20"),
    ],
)
def test_ratios_are_said_in_words(clip, other, text):
    assert compared("a", clip, "b", other) == text


def test_the_axis_counts_logarithms():
    assert AXIS.saved(np.array([100.0, 1000.0, 10_000.0])) == pytest.approx([1, 0.5, 0])
    assert math.isclose(float(AXIS.saved(np.array([10.0]))[0]), 1.5)


def test_one_animal_pair_has_no_interval():
    """Nothing but that pair can be drawn: its value would look certain."""
    lone = Curve([100], [[{"a + b": [3.0, 4]}, {"c + d": [2.0, 4]}]])
    found = volumes({"a": lone, "b": lone}, AXIS)
    assert all(math.isnan(v.low) and math.isnan(v.high) for v in found.values())
    assert found["a"].value == pytest.approx(0.25)
    assert found["b − a"].interval == "one animal pair: none"
    assert volumes({"a": curve([100], 0.75)}, AXIS)["a"].interval == "0.500 to 0.500"
    few = Curve([100], [[{f"pair {p}": [3.0, 4] for p in range(4)}]])
    assert volumes({"a": few}, AXIS)["a"].interval == "0.500 to 0.500 (only 4 pairs)"

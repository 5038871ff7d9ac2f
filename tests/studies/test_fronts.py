"""Fronts, hypervolumes and bounds, on values that can be checked by hand."""

import math
import statistics

import numpy as np
import pytest

from menagerie.studies.analysis.pareto import (
    Axis,
    Bound,
    Curve,
    accuracies,
    bound_ratio,
    fewest_images,
    hypervolume,
    image_ratio,
    pareto_front,
    volumes,
)

AXIS = Axis(100, 10_000)


def volume(images, accuracy):
    return float(hypervolume(np.array(images, float), np.array(accuracy), AXIS))


def test_a_front_is_what_nothing_beats():
    images, accuracy = [500, 100, 900, 300, 100, 700], [0.8, 0.6, 0.9, 0.8, 0.55, 0.7]
    assert [images[k] for k in pareto_front(images, accuracy)] == [100, 300, 900]
    assert pareto_front([5], [0.5]) == [0]
    assert pareto_front([], []) == []


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
def test_hypervolumes_agree_with_areas_done_by_hand(images, accuracy, expected):
    assert volume(images, accuracy) == pytest.approx(expected)


def curve(images, *shares):
    """Three seeds of ten animal pairs of four records; of each pair the share is right."""
    tests = [[{f"pair {p}": [4 * share, 4] for p in range(10)} for _ in range(3)] for share in shares]
    return Curve(list(images), tests)


def test_without_spread_an_interval_is_its_value():
    assert AXIS.saved_share(np.array([10.0, 100.0, 1000.0, 10_000.0])) == pytest.approx([1.5, 1, 0.5, 0])
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


def test_a_model_that_never_reaches_the_target_has_a_lower_bound():
    assert fewest_images([300, 100, 200], [True, False, True]) == Bound(200, False)
    assert fewest_images([300, 100, 200], [False] * 3) == Bound(300, True)
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
    assert bound_ratio(clip, oc_clip) == text


def test_few_animal_pairs_have_no_interval():
    """They may agree by chance, and would look certain."""
    lone = Curve([100], [[{"a + b": [3.0, 4]}, {"c + d": [2.0, 4]}]])
    found = volumes({"a": lone, "b": lone}, AXIS)
    assert all(math.isnan(v.low) and math.isnan(v.high) for v in found.values())
    assert found["a"].value == pytest.approx(0.25)
    assert found["b − a"].interval == "only 2 pairs: no interval"
    assert volumes({"a": curve([100], 0.75)}, AXIS)["a"].interval == "no spread: no interval"
    few = Curve([100], [[{f"pair {p}": [3.0, 4] for p in range(4)}]])
    assert volumes({"a": few}, AXIS)["a"].interval == "only 4 pairs: no interval"


def random_tests(rng, share, seeds=5, pairs=20, records=10, seed_sd=0.0):
    """Tallies of a setting of known accuracy: seeds that differ, records that are right by chance."""
    shares = np.clip(share + rng.normal(0, seed_sd, seeds), 0, 1)
    return [{f"pair {p}": [float(rng.binomial(records, own)), records] for p in range(pairs)} for own in shares]


def test_a_model_at_chance_has_no_hypervolume():
    """Though the best of its twelve settings is above chance by luck; one that is above has one."""
    rng = np.random.default_rng(0)
    images = [100 * 2**k for k in range(6)] * 2
    luck = [random_tests(rng, 0.5) for _ in images]
    assert max(statistics.median(accuracies(tests)) for tests in luck) > 0.51
    skill = [random_tests(rng, 0.7) for _ in images]
    found = volumes({"luck": Curve(images, luck), "skill": Curve(images, skill)}, AXIS)
    assert found["luck"][:3] == (0, 0, 0)
    assert found["skill"].low > 0.2
    assert found["skill − luck"].low > 0.2


@pytest.mark.parametrize("seed_sd", [0.0, 0.06])
def test_hypervolumes_cover_new_seeds(seed_sd):
    """As often as they say, on a test of 20 pairs with five seeds; the truth is that of a setting of 80 %."""
    rng, covered, trials = np.random.default_rng(1), 0, 60
    for _ in range(trials):
        found = volumes({"a": Curve([100], [random_tests(rng, 0.8, seed_sd=seed_sd)])}, AXIS)["a"]
        covered += found.low <= 0.6 <= found.high
    assert 0.86 <= covered / trials <= 1.0


def test_ratios_of_images_have_intervals_over_seeds():
    """One model reaches 90 % with 100 images, the other with 400, whatever the seed."""
    rng = np.random.default_rng(0)
    good = Curve([100, 200, 400], [random_tests(rng, 0.99) for _ in range(3)])
    slow = Curve([100, 200, 400], [random_tests(rng, share) for share in (0.6, 0.7, 0.99)])
    assert image_ratio(slow, good, 0.9) == (4, 4, 4, 0)
    assert image_ratio(good, slow, 0.9) == (0.25, 0.25, 0.25, 0)
    assert image_ratio(good, slow, 0.9).interval == "no spread: no interval"
    about = [random_tests(rng, share, seeds=1)[0] for share in (0.8, 0.86, 0.9, 0.95, 0.99)]
    unsure = Curve([100, 200, 400], [random_tests(rng, 0.6), about, random_tests(rng, 0.99)])
    low, high = image_ratio(unsure, good, 0.9)[1:3]
    assert (low, high) == (2, 4)


def test_a_target_out_of_reach_leaves_a_ratio_without_a_bound():
    rng = np.random.default_rng(0)
    good, never = (Curve([100, 200], [random_tests(rng, share) for _ in range(2)]) for share in (0.99, 0.6))
    assert image_ratio(never, good, 0.9) == (math.inf, math.inf, math.inf, 0)
    assert image_ratio(never, good, 0.9).interval == "first out of reach to first out of reach"
    assert image_ratio(good, never, 0.9)[0] == 0
    assert image_ratio(never, never, 0.9).interval == "none"


@pytest.mark.parametrize("shares", [(0.88, 0.93, 0.94), (0.9, 0.92, 0.94)])
def test_draws_in_which_neither_reaches_the_target_are_not_dropped(shares):
    """Both models have the same accuracy, so that either both reach it or neither does."""
    rng = np.random.default_rng(0)
    seeds = [random_tests(rng, share, seeds=1, pairs=9, records=20)[0] for share in shares]
    found = image_ratio(Curve([400], [seeds]), Curve([200], [seeds]), 0.9)
    assert found[:3] == (2, 0, math.inf)
    assert 0.05 < found.unknown < 0.5
    assert f"{100 * found.unknown:.2g} % of draws" in found.interval
    assert "2.00" not in found.interval


def test_few_draws_without_a_ratio_are_said_beside_the_interval():
    rng = np.random.default_rng(0)
    two = Curve([100], [random_tests(rng, 0.8, seeds=2)])
    assert volumes({"a": two}, AXIS)["a"].interval == "only 2 seeds: no interval"
    rng = np.random.default_rng(0)
    shares = [(0.8, 0.9, 1.0), (0.9, 0.91, 0.92), (0.91, 0.92, 0.93)]
    tests = [[random_tests(rng, share, seeds=1)[0] for share in its] for its in shares]
    found = image_ratio(Curve([200, 400], [tests[0], tests[2]]), Curve([100], [tests[1]]), 0.88)
    assert 0 < found.unknown <= 0.05
    assert found.low < found.high
    assert f"{100 * found.unknown:.2g} % of draws" in found.interval

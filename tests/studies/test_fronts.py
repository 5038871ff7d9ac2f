"""Fronts, hypervolumes and bounds, on values that can be checked by hand."""

import math

import numpy as np
import pytest

from menagerie.studies.analysis.pareto import (
    Bound,
    Curve,
    bound_ratio,
    fewest_images,
    image_ratio,
    pareto_front,
)


def test_a_front_is_what_nothing_beats():
    images, accuracy = [500, 100, 900, 300, 100, 700], [0.8, 0.6, 0.9, 0.8, 0.55, 0.7]
    assert [images[k] for k in pareto_front(images, accuracy)] == [100, 300, 900]
    assert pareto_front([5], [0.5]) == [0]
    assert pareto_front([], []) == []


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


def random_tests(rng, share, seeds=5, pairs=20, records=10, seed_sd=0.0):
    """Tallies of a setting of known accuracy: seeds that differ, records that are right by chance."""
    shares = np.clip(share + rng.normal(0, seed_sd, seeds), 0, 1)
    return [{f"pair {p}": [float(rng.binomial(records, own)), records] for p in range(pairs)} for own in shares]


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
    shares = [(0.8, 0.9, 1.0), (0.9, 0.91, 0.92), (0.91, 0.92, 0.93)]
    tests = [[random_tests(rng, share, seeds=1)[0] for share in its] for its in shares]
    found = image_ratio(Curve([200, 400], [tests[0], tests[2]]), Curve([100], [tests[1]]), 0.88)
    assert 0 < found.unknown <= 0.05
    assert found.low < found.high
    assert f"{100 * found.unknown:.2g} % of draws" in found.interval

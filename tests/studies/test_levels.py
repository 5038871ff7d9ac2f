"""Intervals of benchmarks' headlines, and their mean over seeds."""

import json
import math

import numpy as np
import pytest

from menagerie.generators.benchmarks import caption_pairs, vl_checklist
from menagerie.generators.benchmarks.benchmark import Item, Outcome, ScoredItem, summarise
from menagerie.generators.benchmarks.photographs import macro_mean, summaries_by_task
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.captions.templates import Caption
from menagerie.generators.sources.place import Place
from menagerie.studies.analysis.intervals import PARTS, jackknife_intervals
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.scoring.benchmarks import headline_numbers, result_cluster
from menagerie.studies.scoring.page import binomial, seed_mean
from tests.helpers.benchmark_files import IMAGES, MAKERS, write_json

RATES = {"few": 0.9, "many": 0.6}  # of the two tasks, and their sizes
SIZES = {"few": 40, "many": 160}


def headlines(items, outcomes):
    return {"micro": summarise(outcomes), "macro": macro_mean(list(summaries_by_task(items, outcomes).values()))}


def drawn(random):
    """The intervals of a draw of records in clusters of two equal ones."""
    tasks = [task for task, size in SIZES.items() for _ in range(size)]
    items = [Item(str(k), task, (), (), str(k // 2)) for k, task in enumerate(tasks)]
    values = [float(v) for item in items[::2] for v in [random.random() < RATES[item.task]] * 2]
    outcomes = [Outcome(value, value, False) for value in values]
    return jackknife_intervals(
        [i.cluster for i in items], lambda of: headlines([items[k] for k in of], [outcomes[k] for k in of])
    )


def test_micro_and_macro_intervals_hold_the_truth_in_95_of_100_draws():
    random = np.random.default_rng(0)
    truth = {"macro": 0.75, "micro": sum(RATES[t] * SIZES[t] for t in RATES) / sum(SIZES.values())}
    found = [drawn(random) for _ in range(300)]
    for name, value in truth.items():
        assert 0.90 < np.mean([its[name][0] <= value <= its[name][1] for its in found]) < 0.98


def test_few_or_equal_records_have_no_interval():
    def mean(of):
        return {"all": summarise([Outcome(float(k % 2), 0.5, False) for k in of])}

    assert jackknife_intervals(range(4), mean) == {}
    assert mean(range(5)).keys() == jackknife_intervals(range(5), mean).keys()
    assert jackknife_intervals(range(40), lambda of: {"all": summarise([Outcome(1.0, 1.0, False) for _ in of])}) == {}


def test_alternating_records_are_spread_over_all_parts():
    numbers = []

    def odd(of):
        numbers.append(sum(k % 2 for k in of))
        return {}

    jackknife_intervals(range(400), odd)
    assert sum(number < numbers[0] for number in numbers) == PARTS


def made(name, root):
    MAKERS[name](root)
    return load_benchmark(name).build(Place(root, resolution=16))


def test_a_task_with_just_enough_records_counts_in_every_part(tmp_path):
    """Of 25 records, the fewest with which a task counts, some are left out for an interval."""
    bench = made("vg-attribution", tmp_path)
    outcomes = [Outcome(float(k % 3 == 0), 0.5, False) for k in range(len(bench.items))]

    def both(of):
        found = bench.headlines([bench.items[k] for k in of], [outcomes[k] for k in of])
        return {**found, "alone": summarise([outcomes[k] for k in of if bench.items[k].task == "red_big"])}

    found = jackknife_intervals(range(len(outcomes)), both)
    assert found["macro over attributes"] == found["alone"]


def test_no_later_record_takes_the_place_of_a_first_one(tmp_path, monkeypatch):
    """Whether the first is left out, unread, or without its image."""
    monkeypatch.setattr(vl_checklist, "FIRST", 1)
    bench = made("vl-checklist", tmp_path)
    (item,) = [item for item in bench.items if item.task == "Attribute/vg/color"][1:]
    found = bench.headlines([item], [Outcome(1.0, 1.0, False)])
    assert (found["macro over files"].n, found["macro over files, first 1"].n) == (1, 0)
    file, texts = tmp_path / "vl_checklist/data/Attribute/vg/color.json", {"POS": ["odd"], "NEG": ["even"]}
    others, place = json.loads(file.read_text())[1:], Place(tmp_path, resolution=16, allow_missing=True)
    write_json(file, [["VG_100K/0.jpg", texts], *others])
    whole = load_benchmark("vl-checklist").build(place)
    words = {text: Caption(text.text.replace("odd", ""), text.graph) for item in whole.items for text in item.texts}
    skipped = whole.reword(words)
    write_json(file, [["VG_100K/gone.jpg", texts], *others])
    lacking = load_benchmark("vl-checklist").build(place)
    for bench, n in ((whole, 56), (skipped, 55), (lacking, 55)):
        found = bench.headlines(bench.items, [Outcome(1.0, 1.0, False) for _ in bench.items])
        assert found["macro over files, first 1"].n == n


@pytest.mark.parametrize(("name", "images"), [("retrieval-coco", IMAGES), ("zero-shot", 19)])
def test_clusters_of_pools_are_images(name, images, tmp_path):
    bench = made(name, tmp_path)
    items = [item for pool in bench.pools for item, _ in bench.tied_outcomes(pool)]
    assert len({result_cluster(item, pooled=True) for item in items}) == images < len(items)


class Fragile(caption_pairs.VGAttribution):
    """A benchmark without numbers for a part of its records."""

    def headlines(self, items, outcomes):
        return {str(len(items)): {len(self.items): summarise(outcomes)}[len(items)]}


def test_a_benchmark_that_fails_without_some_records_has_no_interval(tmp_path):
    place, whole = Place(tmp_path, resolution=16), made("vg-attribution", tmp_path)
    bench = Fragile("fragile", "aro/images", whole.records, place)
    values = [float(k % 2) for k in range(len(bench.items))]
    both = zip(bench.items, values, strict=True)
    results = [ScoredItem(item, np.zeros((1, 2)), Outcome(value, value, False)) for item, value in both]
    (found,) = headline_numbers(bench, results, ()).values()
    assert (found["official"], found["low"], found["high"]) == (0.5, None, None)


def test_a_share_of_independent_records_has_wilsons_interval():
    """Against the example of Wilson's interval for 7 of 10."""
    assert binomial(0.7, 10) == pytest.approx({"low": 0.3968, "high": 0.8922}, abs=1e-4)
    assert binomial(0.5, 4) == binomial(1.0, 40) == {"low": None, "high": None}


def level(value, half=0.02):
    return Estimate(value, value - half, value + half, 100, 100, 1, math.nan)


def test_seeds_widen_the_interval_over_records():
    one, two, three = (seed_mean([level(v) for v in values]) for values in ((0.5,), (0.5, 0.6), (0.4, 0.5, 0.6)))
    assert one == level(0.5)
    assert not two.known
    student = 4.3027 * 0.1 / math.sqrt(3)
    assert three.value == pytest.approx(0.5)
    assert three.high - three.value == pytest.approx(math.hypot(student, 0.02), rel=1e-4)
    assert seed_mean([level(0.5)] * 3).high == pytest.approx(0.52), "seeds that agree add nothing"
    clipped = level(0.99)._replace(high=1.0)
    assert seed_mean([clipped] * 3).low == pytest.approx(0.97), "the wider side counts"

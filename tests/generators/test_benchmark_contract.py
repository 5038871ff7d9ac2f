"""What every benchmark of photographs must do: one contract for all, on tiny files, under known scorers."""

import math
import re
from collections import Counter

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks import clevr_bind
from menagerie.generators.benchmarks.matrix import MatrixBenchmark, true_candidates
from menagerie.generators.benchmarks.photographs import group_by_task
from menagerie.generators.benchmarks.registry import load_benchmark, names
from menagerie.generators.sources.place import Place
from tests.helpers.benchmark_files import MAKERS, build, is_picture, outcomes_of, truth

# Benchmarks whose official rule takes the first of equal scores; the true text is the first there.
FIRST_COUNTS = {
    *("clevr-bind", "clevr-bind-prompted", "coco-order", "coco-spatial", "crepe-productivity", "crepe-systematicity"),
    *("flickr-order", "gqa-spatial", "whatsup"),
}
PLACED = {"negbench", "spec"}  # those in which it is the first in some records
# Tasks whose ties are broken at random.
RANDOM_TIES = {*clevr_bind.RELATIONS, "left/right", "bottom/top", "blue/red", "grass/stone"}
FOLDERS_ALONE = ("zero-shot", "imagenet-ao", "ncd")  # no file says which images there should be
PROBES = ("probe", "probe-torchvision")  # need all their images
GRADED = {"cola-single"}  # its score isn't right or wrong; tested in test_halves.py
DRAWS = 100


@pytest.fixture(scope="module", params=sorted(MAKERS.keys() - GRADED))
def built(request, tmp_path_factory):
    """A benchmark made of tiny files, and the number of tests of each task."""
    root = tmp_path_factory.mktemp("data")
    counts = MAKERS[request.param](root)
    return build(request.param, root), counts


def refusal(name, root):
    """The one line with which a benchmark is refused."""
    with pytest.raises(UserError) as error:
        build(name, root)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def test_every_benchmark_has_tiny_files():
    assert MAKERS.keys() == set(names())


def test_tests_and_images_are_those_of_the_files(built):
    bench, counts = built
    items, _ = outcomes_of(bench, lambda true: true)
    assert Counter(item.task for item in items) == bench.tests() == counts
    assert sorted(bench.tasks) == sorted(counts)
    assert len({(item.record, item.task) for item in items}) == len(items)
    numbers = range(len(bench.numbers))
    pixels = bench.images(numbers)
    assert pixels.shape == (len(numbers), 3, 16, 16)
    assert len({image.numpy().tobytes() for image in pixels}) == len(numbers), "images that should differ are the same"
    for item in bench.items:
        different = len({text.text for text in item.texts})
        assert different >= 2 or len(item.images) >= 2
        assert different == len(item.texts) or bench.made_texts  # a shuffle may change nothing
        assert all(text.graph.nodes == (text.text,) for text in item.texts)
    for pool in getattr(bench, "pools", ()):
        assert len(pool.records) == len(pool.images) == len(set(pool.images))
        assert {row for row, _ in pool.pairs} == set(range(len(pool.images)))


@pytest.mark.parametrize(("sign", "expected"), [(1, 1.0), (-1, 0.0)])
def test_a_perfect_scorer_is_always_right_and_an_inverted_one_never(built, sign, expected):
    bench, _ = built
    items, outcomes = outcomes_of(bench, lambda true: sign * true)
    assert set(outcomes) == {(expected, expected, False)}
    for summary in bench.headlines(items, outcomes).values():
        assert summary.n
        assert summary[:3] == (expected, expected, 0)


def chance_of(item):
    """How often a random scorer is right on an item."""
    k, m = truth(item).shape
    return {"text": m**-k, "group": 1 / 6}.get(item.task, 1 / max(k, m) if 1 in (k, m) else k**-k)


def test_ties_of_a_constant_scorer_count_as_the_official_rule_says_and_neutrally_by_chance(built):
    bench, _ = built
    items, outcomes = outcomes_of(bench, np.zeros_like)
    for item, outcome in zip(bench.items, outcomes, strict=False):
        first = bench.name in FIRST_COUNTS or (bench.name in PLACED and item.truth == 0)
        assert outcome[1:] == (pytest.approx(chance_of(item)), True)
        assert item.task in RANDOM_TIES or outcome.official == float(first)
    parts = group_by_task(items, outcomes)
    for pool, measure in [(p, m) for p in getattr(bench, "pools", ()) for m in bench.measures_of(p)]:
        n, answers = len(pool.texts if measure.of_images else pool.images), true_candidates(pool, measure.of_images)
        for outcome, own in zip(parts[f"{pool.name} {measure.name}".strip()], answers.values(), strict=True):
            missed = math.comb(n - len(own), measure.k) / math.comb(n, measure.k)
            assert outcome == (float(min(own) < measure.k), pytest.approx(1 - missed), 0 < missed < 1)
    if isinstance(bench, MatrixBenchmark):
        level = (its for pool in bench.pools for its in bench.tied_outcomes(pool))
        assert Counter(level) == Counter(zip(items, outcomes, strict=True))


def test_a_random_scorer_is_at_chance(built):
    """Chance is what a constant scorer has when ties are shared; four deviations over all draws."""
    bench, _ = built
    rng = np.random.default_rng(0)
    constant = bench.headlines(*outcomes_of(bench, np.zeros_like))
    drawn = [bench.headlines(*outcomes_of(bench, lambda true: rng.random(true.shape))) for _ in range(DRAWS)]
    for name, chance in constant.items():
        own = [headlines[name] for headlines in drawn]
        found, p = [its.official for its in own], chance.neutral
        error = 4 * max(np.std(found), np.sqrt(p * (1 - p) / chance.n)) / np.sqrt(DRAWS)
        assert np.mean(found) == pytest.approx(p, abs=error)
        assert all(its.neutral == its.official and its.tie_rate == 0 for its in own)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_missing_files_and_images_are_one_error_and_images_may_be_allowed_to_be_missing(name, tmp_path):
    for root in (tmp_path, tmp_path / "nowhere"):
        assert str(root) in refusal(name, root)
    counts = MAKERS[name](tmp_path / "data")
    images = sorted(filter(is_picture, (tmp_path / "data").rglob("*")))
    for image in images[len(images) // 2 :]:
        image.unlink()
    if name == "ncd":
        assert build(name, tmp_path / "data").records
        return
    assert re.search(
        r"images are missing in .*/data/.*, the first is '|has no images", refusal(name, tmp_path / "data")
    )
    if name not in (*FOLDERS_ALONE, *PROBES):
        bench = build(name, tmp_path / "data", allow_missing=True)
        assert dict(bench.tests() + bench.untested()) == counts
        assert bench.untested()
        assert sorted(bench.tasks) == sorted(counts)


# Others take the last part of a path alone, or make it of a number.
CLIMBING = (
    *("bivlc", "clevr-bind", "colorswap", "eqben", "naturalbench-retrieval", "pug-spar", "pug-spare"),
    *("retrieval-coco", "retrieval-coco-val2017", "retrieval-flickr8k", "spec", "sugarcrepe", "sugarcrepe-pp"),
    *("valse", "vismin", "vl-checklist"),
)


@pytest.mark.parametrize("name", CLIMBING)
def test_a_path_that_climbs_out_of_the_images_is_refused(name, tmp_path):
    MAKERS[name](tmp_path)
    image = next(path.name for path in sorted(tmp_path.rglob("*")) if is_picture(path))
    for file in (path for path in tmp_path.rglob("*") if path.suffix in (".json", ".jsonl", ".csv", ".txt")):
        file.write_text(file.read_text().replace(image, f"../../../../{image}"))
    (tmp_path / image).write_bytes(b"secret")
    with pytest.raises(UserError, match=r"leads out of the folder .* do not trust"):
        load_benchmark(name).build(Place(tmp_path, 16, allow_missing=True))

"""Benchmarks that compare all images with all texts, under scorers whose results are known."""

import math
import shutil
from collections import Counter

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks import retrieval
from menagerie.generators.benchmarks.benchmark import Outcome
from menagerie.generators.benchmarks.matrix import among_best, rank_candidates, true_candidates
from menagerie.generators.benchmarks.photographs import group_by_task
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.sources.place import Place
from tests.helpers.benchmark_files import IMAGES, MATRICES, captions_of, make_karpathy_test


@pytest.fixture(params=sorted(MATRICES))
def built(request, tmp_path):
    """A benchmark from tiny files, and the number of queries of each task."""
    counts = MATRICES[request.param](tmp_path)
    return load_benchmark(request.param).build(Place(tmp_path, resolution=16)), counts


def make(name, root, **more):
    MATRICES[name](root)
    return load_benchmark(name).build(Place(root, resolution=16, **more))


def true(pool):
    """1 where an image and a text belong together, else 0."""
    scores = np.zeros((len(pool.images), len(pool.texts)), np.float32)
    for pair in pool.pairs:
        scores[pair] = 1
    return scores


def outcomes_of(bench, score):
    results = [result for pool in bench.pools for result in bench.results(pool, score(pool))]
    return [result.item for result in results], [result.outcome for result in results]


def test_queries_and_images_are_those_of_the_files(built):
    bench, counts = built
    items, _ = outcomes_of(bench, true)
    assert Counter(item.task for item in items) == bench.tests() == counts
    assert sorted(bench.tasks) == sorted(counts)
    assert len({(item.record, item.task) for item in items}) == len(items)
    numbers = sorted({number for pool in bench.pools for number in pool.images})
    pixels = bench.images(numbers)
    assert len({image.numpy().tobytes() for image in pixels}) == len(numbers), "images that should differ are the same"
    for pool in bench.pools:
        assert len(pool.records) == len(pool.images) == len(set(pool.images))
        assert {row for row, _ in pool.pairs} == set(range(len(pool.images)))


@pytest.mark.parametrize(("kind", "expected"), [("perfect", 1.0), ("inverted", 0.0)])
def test_a_perfect_and_an_inverted_scorer(built, kind, expected):
    """Of two classes nobody asks for the best five, among which both are whatever the scores."""
    bench, _ = built
    items, outcomes = outcomes_of(bench, lambda pool: true(pool) * (1 if kind == "perfect" else -1))
    for item, outcome in zip(items, outcomes, strict=True):
        assert outcome == Outcome(expected, expected, False), item
    for summary in bench.headlines(items, outcomes).values():
        assert (summary.official, summary.neutral, summary.tie_rate) == (expected, expected, 0)


def test_a_constant_scorer(built):
    """Officially the first in the file are the best; a tie is shared by chance, which is that of drawing k."""
    bench, _ = built
    items, outcomes = outcomes_of(bench, lambda pool: np.zeros_like(true(pool)))
    assert Counter(its for pool in bench.pools for its in bench.level(pool)) == Counter(
        zip(items, outcomes, strict=True)
    )
    parts = group_by_task(items, outcomes)
    for pool in bench.pools:
        for measure in bench.measures_of(pool):
            task = f"{pool.name} {measure.name}".strip()
            n = len(pool.texts if measure.of_images else pool.images)
            answers = true_candidates(pool, measure.of_images)
            for outcome, own in zip(parts[task], answers.values(), strict=True):
                missed = math.comb(n - len(own), measure.k) / math.comb(n, min(measure.k, n))
                assert outcome.neutral == pytest.approx(1 - missed)
                assert outcome.official == float(min(own) < measure.k)
                assert outcome.tied == (0 < missed < 1)


DRAWS = 200


def test_a_random_scorer_is_at_chance(built):
    """Over many draws it has what a constant one has when ties are shared; queries of one draw share their scores."""
    bench, _ = built
    rng = np.random.default_rng(0)
    constant = bench.headlines(*outcomes_of(bench, lambda pool: np.zeros_like(true(pool))))
    drawn = [bench.headlines(*outcomes_of(bench, lambda pool: rng.random(true(pool).shape))) for _ in range(DRAWS)]
    for name, chance in constant.items():
        own = [headlines[name] for headlines in drawn]
        error = 4 * np.sqrt(chance.neutral * (1 - chance.neutral) / DRAWS)
        assert np.mean([its.official for its in own]) == pytest.approx(chance.neutral, abs=error)
        assert all(its.neutral == its.official and its.tie_rate == 0 for its in own)


def test_ranks_by_hand():
    """Candidates 1 and 4 are true; the best of them is level with a false one before it and one behind it."""
    scores = np.array([0.9, 0.2, 0.5, 0.1, 0.5, 0.5], np.float32)
    ranked = rank_candidates(scores, np.array([1, 4]))
    assert ranked == (4, 0, 1, (2, 1), 1)
    assert among_best(ranked, 1) == Outcome(0.0, 0.0, False)
    assert among_best(ranked, 2) == Outcome(0.0, pytest.approx(1 / 3), True)
    assert among_best(ranked, 3) == Outcome(1.0, pytest.approx(2 / 3), True)
    assert among_best(ranked, 4) == Outcome(1.0, 1.0, False)
    assert among_best(ranked, 9) == Outcome(1.0, 1.0, False)


def test_compositions_are_one_pool_of_all(tmp_path):
    """A record of each picture has its own text alone: with all of them it would take gigabytes."""
    names = [f"{attribute}_{obj}/0.png" for attribute in range(12) for obj in range(10)]
    for name in names:
        path = tmp_path / "imagenet_ao/images" / name
        path.parent.mkdir(parents=True)
        path.touch()
    bench = load_benchmark("imagenet-ao").build(Place(tmp_path, resolution=16))
    (pool,) = bench.pools
    assert (len(pool.texts), len(pool.images), len(pool.pairs)) == (120, 120, 120)
    assert all(len(record.texts) == 1 for record in bench.records)
    assert list(bench.headlines(*outcomes_of(bench, true))) == ["acc1", "acc5", "mean per-class recall"]


def test_all_forms_of_karpathys_split_are_the_same(tmp_path):
    for name, folder in (("retrieval-coco", "coco"), ("retrieval-flickr30k", "flickr30k")):
        bench = make(name, tmp_path)
        spec = load_benchmark(name)
        own, blip = (tmp_path / form for form in spec.one_of)
        own.unlink()
        assert [text[0].text for text in bench.pools[0].texts] == [t for k in range(IMAGES) for t in captions_of(k)]
        make_karpathy_test(blip, folder)
        assert spec.build(Place(tmp_path, resolution=16)).pools == bench.pools
        blip.unlink()
        with pytest.raises(UserError, match=r"there is neither .* nor .*; get one of them"):
            spec.build(Place(tmp_path))


def test_karpathys_file_is_read_once_until_it_changes(tmp_path, monkeypatch):
    """That of COCO has 140 MB, and two benchmarks read it."""
    read, calls = retrieval.read_json, []
    monkeypatch.setattr(retrieval, "read_json", lambda path: calls.append(path) or read(path))
    MATRICES["retrieval-coco"](tmp_path)
    place = Place(tmp_path, tag=None)
    for name in ("retrieval-coco", "coco-order"):
        load_benchmark(name).build(place)
    assert len(calls) == 1
    file = tmp_path / "coco/dataset_coco.json"
    file.write_text(file.read_text().replace("small cat", "large cat"))
    assert "large cat" in load_benchmark("coco-order").build(place).records[0].texts[0]
    assert len(calls) == 2


def test_classes_and_templates(tmp_path):
    bench = make("zero-shot", tmp_path)
    texts = {pool.name: [[phrasing.text for phrasing in text] for text in pool.texts] for pool in bench.pools}
    assert texts["fruit"] == [["a photo of a pear."], ["a photo of a red apple."]]
    assert texts["mine"] == [["a cat", "many cats"], ["a dog", "many dogs"]]
    assert [text for (text,) in texts["mnist"]] == [f'a photo of the number: "{k}".' for k in range(10)]


def test_the_mean_over_classes_is_not_that_over_images(tmp_path):
    """Right on the digit 1 alone: two of 15 images, one of ten classes."""
    bench = make("zero-shot", tmp_path)
    ones = np.eye(10, dtype=np.float32)[1]
    items, outcomes = outcomes_of(bench, lambda p: np.tile(ones, (15, 1)) if p.name == "mnist" else true(p))
    found = bench.headlines(items, outcomes)
    assert found["mnist acc1"].official == pytest.approx(2 / 15)
    assert found["mnist mean per-class recall"].official == pytest.approx(1 / 10)


class TestZeroShotFolders:
    """What is refused."""

    @pytest.mark.parametrize(
        ("spoil", "problem"),
        [
            (
                lambda root: shutil.rmtree(root / "mnist/7"),
                "9 folders for the 10 classes of mnist: there is no folder for '7'; copy",
            ),
            (lambda root: [f.unlink() for f in (root / "mnist/7").iterdir()], "the class '7' in"),
            (lambda root: (root / "mine/classes.txt").unlink(), "class 'n00000000' in"),
            (lambda root: (root / "mine/classes.txt").write_text("n00000000\tcat\n"), "has 1 lines for 2 folders"),
            (lambda root: (root / "mine/classes.txt").write_text("a\tb\n\nc\td\n"), "classes.txt has an empty line"),
            (lambda root: (root / "mine/templates.txt").write_text("a photo\n"), "a template without {c}: 'a photo'"),
            (lambda root: shutil.rmtree(root / "fruit/pear"), "has 1 folders of classes"),
            (lambda root: shutil.rmtree(root), "there is no folder"),
            (lambda root: [shutil.rmtree(folder) for folder in root.iterdir()], "there are no folders in"),
        ],
    )
    def test_one_line(self, spoil, problem, tmp_path):
        MATRICES["zero-shot"](tmp_path)
        spoil(tmp_path / "zero_shot")
        with pytest.raises(UserError) as error:
            load_benchmark("zero-shot").build(Place(tmp_path))
        assert problem in str(error.value)
        assert "\n" not in str(error.value)


class TestMissing:
    """Images that aren't there."""

    def test_they_are_an_error(self, tmp_path):
        MATRICES["retrieval-coco"](tmp_path)
        (tmp_path / "coco/val2014/COCO_val2014_000000000003.jpg").unlink()
        with pytest.raises(UserError, match=r"1 of 7 images are missing in .*val2014, the first is '.*0003.jpg'"):
            load_benchmark("retrieval-coco").build(Place(tmp_path))

    def test_they_are_left_out_where_allowed_and_counted(self, tmp_path):
        counts = MATRICES["retrieval-coco"](tmp_path)
        (tmp_path / "coco/val2014/COCO_val2014_000000000003.jpg").unlink()
        bench = load_benchmark("retrieval-coco").build(Place(tmp_path, allow_missing=True))
        lost = {"I2T R@1": 1, "I2T R@5": 1, "T2I R@1": 3, "T2I R@5": 3}
        assert bench.untested() == lost
        assert bench.tests() == {name: count - lost[name] for name, count in counts.items()}

    def test_one_image_is_no_retrieval(self, tmp_path):
        MATRICES["retrieval-coco"](tmp_path)
        for k in range(1, IMAGES):
            (tmp_path / f"coco/val2014/COCO_val2014_{k:012d}.jpg").unlink()
        with pytest.raises(UserError, match="1 images are there, and retrieval needs at least 2"):
            load_benchmark("retrieval-coco").build(Place(tmp_path, allow_missing=True))


def test_texts_without_a_word_left_are_no_candidates(tmp_path):
    """A caption that is gone is no query; an image that has none left neither, but it stays a candidate."""
    bench = make("retrieval-coco", tmp_path)
    gone = {text for text in bench.texts if text.text.startswith(("a small cat beside 2", "2 dogs"))}
    assert len(gone) == 2
    made = bench.reworded({text: text._replace(text="") if text in gone else text for text in bench.texts})
    (pool,), (before,) = made.pools, bench.pools
    assert len(pool.images) == IMAGES
    assert len(pool.texts) == len(before.texts) - 2
    assert made.tests()["I2T R@1"] == IMAGES - 1
    _, outcomes = outcomes_of(made, true)
    assert all(outcome.official == 1 for outcome in outcomes)


class TestTorchvision:
    """Data sets as torchvision lays them out."""

    NAME, ROOT = "zero-shot-torchvision", "torchvision"

    def test_labels_and_classes(self, tmp_path):
        """By the number of a class: from 0, from 1 (STL-10, pets), by the alphabet or a list."""
        bench = make(self.NAME, tmp_path)
        true = {p.name: [p.texts[column][0].text for _, column in p.pairs] for p in bench.pools}
        assert true["cifar10"] == [f"a photo of a class {k}." for k in (0, 9, 9)]
        assert true["cifar100"] == ["a photo of a fine_7.", "a photo of a fine_99."]
        assert true["stl10"] == ["a photo of an object 0.", "a photo of an object 9."]
        assert true["mnist"] == [f'a photo of the number: "{k}".' for k in (7, 2, 1)]
        assert true["pets"] == ["a photo of a Abyssinian, a type of pet.", "a photo of a Beagle, a type of pet."]
        assert true["dtd"][2:4] == ["a photo of a dotted texture."] * 2
        assert true["fgvc_aircraft"][1] == "a photo of a 307-300 ER, a type of aircraft."
        assert true["food101"][:3] == ["a photo of pie 0, a type of food.", *["a photo of pie 1, a type of food."] * 2]

    def test_a_newline_alone_ends_the_name_of_a_class(self, tmp_path):
        """Else all classes behind a line separator would have the names of others."""
        MATRICES[self.NAME](tmp_path)
        file = tmp_path / self.ROOT / "cifar-10-batches-bin/batches.meta.txt"
        file.write_text(file.read_text().replace("class_3", "cl\u2028ass\x85_3"), encoding="utf-8")
        (pool,) = (pool for pool in self.again(tmp_path).pools if pool.name == "cifar10")
        assert [text[0].text for text in pool.texts][3:5] == ["a photo of a cl ass 3.", "a photo of a class 4."]

    def test_pixels_are_those_of_the_bytes(self, tmp_path):
        """CIFAR's rows plane by plane, STL-10's columns, MNIST's grey."""
        bench = make(self.NAME, tmp_path)
        root = tmp_path / self.ROOT
        for name, file, start, shape, order in (
            ("cifar10", "cifar-10-batches-bin/test_batch.bin", 3073 + 1, (3, 32, 32), (0, 1, 2)),
            ("cifar100", "cifar-100-binary/test.bin", 3074 + 2, (3, 32, 32), (0, 1, 2)),
            ("stl10", "stl10_binary/test_X.bin", 3 * 96 * 96, (3, 96, 96), (0, 2, 1)),
            ("mnist", "MNIST/raw/t10k-images-idx3-ubyte", 16 + 28 * 28, (1, 28, 28), (0, 1, 2)),
        ):
            content = (root / file).read_bytes()[start : start + math.prod(shape)]
            expected = np.frombuffer(content, np.uint8).reshape(shape).transpose(order)
            (pool,) = (pool for pool in bench.pools if pool.name == name)
            pixels = bench.framed(shape[1], False, "bicubic").images([pool.images[1]])[0].numpy()
            assert (pixels == expected).all(), name

    def test_a_fingerprint_is_of_one_image(self, tmp_path):
        bench = make(self.NAME, tmp_path)
        before = [bench.fingerprint(number) for number in range(len(bench.numbers))]
        assert len(set(before)) == len(before)
        path = tmp_path / self.ROOT / "cifar-10-batches-bin/test_batch.bin"
        content = bytearray(path.read_bytes())
        content[3073 + 1 + 17] ^= 1
        path.write_bytes(content)
        changed = self.again(tmp_path)
        after = [changed.fingerprint(number) for number in range(len(before))]
        assert [one == other for one, other in zip(before, after, strict=True)].count(False) == 1

    def again(self, root):
        return load_benchmark(self.NAME).build(Place(root, resolution=16))

    @pytest.mark.parametrize(
        ("spoil", "problem"),
        [
            (lambda root: shutil.rmtree(root / "cifar-10-batches-bin"), "holds pickles, which may run code"),
            (lambda root: (root / "cifar-100-binary/test.bin").write_bytes(b"\0" * 100), "no whole number of images"),
            (lambda root: (root / "stl10_binary/test_y.bin").write_bytes(b"\1"), "has 1 labels for 2 images"),
            (
                lambda root: (root / "stl10_binary/test_y.bin").write_bytes(b"\0\1"),
                "the class of 'stl10_binary/test_X.bin#0'",
            ),
            (lambda root: (root / "MNIST/raw/t10k-labels-idx1-ubyte").unlink(), "t10k-labels-idx1-ubyte can't be read"),
            (
                lambda root: (root / "dtd/dtd/labels/test1.txt").write_text("../../x.jpg\na/b.jpg\n"),
                "leads out of the folder",
            ),
            (
                lambda root: (root / "oxford-iiit-pet/annotations/test.txt").write_text("a b\n"),
                "without the number of a",
            ),
            (lambda root: (root / "fgvc-aircraft-2013b/data/variants.txt").write_text("a\nb\n"), "is none of the 2"),
            (lambda root: (root / "food-101/meta/test.json").write_text('{"a": ["a/0"]}'), "its 1 classes"),
            (lambda root: (root / "food-101/images/pie_3/0.jpg").unlink(), "1 of 35 images are missing"),
            (
                lambda root: [shutil.rmtree(folder) for folder in root.iterdir()],
                "there is none of cifar-10-batches-bin",
            ),
        ],
    )
    def test_one_line(self, spoil, problem, tmp_path):
        MATRICES[self.NAME](tmp_path)
        spoil(tmp_path / self.ROOT)
        with pytest.raises(UserError) as error:
            self.again(tmp_path)
        assert problem in str(error.value)
        assert "\n" not in str(error.value)

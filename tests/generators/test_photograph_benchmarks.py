"""Benchmarks of photographs, read from files in their official formats, under scorers whose results are known."""

import json
import os
import re
import shutil
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from envs.common.errors import UserError
from generators.benchmarks import sugarcrepe
from generators.benchmarks.benchmark import summarise
from generators.benchmarks.photographs import Place, by_group
from generators.benchmarks.registry import load, names
from models.library.pictures import framed_images
from models.towers.pixels import Framing
from tests.generators.benchmark_files import MAKERS, MATRICES, tiny_tags

SHARED = Path(os.environ.get("MENAGERIE_SHARED", Path(__file__).parents[2].parent / "shared")) / "data"
# Those whose official rule takes the first of equal scores; the truth stands first there.
FIRST_COUNTS = {"clevr-bind", "coco-order", "coco-spatial", "flickr-order", "gqa-spatial", "whatsup"}


@pytest.fixture(params=sorted(MAKERS))
def built(request, tmp_path):
    """A benchmark from tiny files, and the number of records of each group."""
    counts = MAKERS[request.param](tmp_path)
    return load(request.param).build(Place(tmp_path, resolution=16, tag=tiny_tags)), counts


def test_every_benchmark_has_files():
    assert MAKERS.keys() | MATRICES.keys() == set(names())


def test_records_and_images_are_those_of_the_files(built):
    bench, counts = built
    assert Counter(item.group for item in bench.items) == counts
    assert list(bench.groups) == list(dict.fromkeys(item.group for item in bench.items))
    numbers = sorted({number for item in bench.items for number in item.images})
    pixels = bench.images(numbers)
    assert pixels.shape == (len(numbers), 3, 16, 16)
    assert len({image.numpy().tobytes() for image in pixels}) == len(numbers), "images that should differ are the same"
    assert len({(item.record, item.group) for item in bench.items}) == len(bench.items)
    for item in bench.items:
        different = len({text.text for text in item.texts})
        assert different >= 2
        assert different == len(item.texts) or bench.made_texts  # a shuffle may change nothing
        assert all(text.graph.nodes == (text.text,) for text in item.texts)


def true(item):
    """1 where an image belongs with a text, else 0."""
    return np.eye(len(item.images), len(item.texts))


def chance(item):
    """How often a random scorer is right."""
    k, m = true(item).shape
    return {"text": m**-k, "image": k**-k, "group": 1 / 6}.get(item.group, 1 / m)


SCORERS = {
    "perfect": (true, 1.0, 1.0, 0.0),
    "inverted": (lambda item: -true(item), 0.0, 0.0, 0.0),
    "constant": (lambda item: np.zeros_like(true(item)), None, None, 1.0),
}


@pytest.mark.parametrize("kind", SCORERS)
def test_known_scorers_have_known_results(built, kind):
    """A perfect one is always right, an inverted one never; of a constant one the rules differ, which ties show."""
    bench, _ = built
    score, official, neutral, ties = SCORERS[kind]
    outcomes = [bench.outcome(item, score(item)) for item in bench.items]
    for item, outcome in zip(bench.items, outcomes, strict=True):
        if kind == "constant":
            assert outcome.neutral == pytest.approx(chance(item))
            first = bench.name in FIRST_COUNTS or (bench.name == "negbench" and bench.places[item.record] == 0)
            assert outcome.official == float(first)
        else:
            assert (outcome.official, outcome.neutral) == (official, neutral)
        assert outcome.tied == bool(ties)
    for summary in [*bench.headlines(bench.items, outcomes).values(), summarise(outcomes)]:
        assert summary.n
        assert summary.tie_rate == ties
        if kind != "constant":
            assert (summary.official, summary.neutral) == (official, neutral)


DRAWS = 400


def test_a_random_scorer_is_at_chance(built):
    """Over many draws, by both rules, which are one where nothing ties: four deviations of that many draws."""
    bench, _ = built
    rng = np.random.default_rng(0)
    for group in bench.groups:
        items = [item for item in bench.items if item.group == group] * DRAWS
        outcomes = [bench.outcome(item, rng.random(true(item).shape)) for item in items]
        expected = np.array([chance(item) for item in items])
        error = 4 * np.sqrt((expected * (1 - expected)).sum()) / len(items)
        assert summarise(outcomes).official == pytest.approx(expected.mean(), abs=error)
        assert all(outcome.neutral == outcome.official and not outcome.tied for outcome in outcomes)


def test_pairs_and_sets_of_a_random_scorer_are_at_chance(tmp_path):
    """Of What'sUp, which chance reaches less often."""
    MAKERS["whatsup"](tmp_path)
    bench = load("whatsup").build(Place(tmp_path, resolution=16))
    rng = np.random.default_rng(0)
    drawn = [
        bench.headlines(bench.items, [bench.outcome(item, rng.random(true(item).shape)) for item in bench.items])
        for _ in range(4000)
    ]
    for name, chance in (("A pairs", 1 / 16), ("B pairs", 1 / 16), ("B sets", 1 / 256)):
        mean = np.mean([headlines[name].official for headlines in drawn])
        assert mean == pytest.approx(chance, abs=4 * np.sqrt(chance / 4000))


def test_groups_of_whats_up(tmp_path):
    """Of one set all but one right: of its two pairs one, of its sets none."""
    MAKERS["whatsup"](tmp_path)
    bench = load("whatsup").build(Place(tmp_path, resolution=16))
    wrong = next(item for item in bench.items if "under" in item.record)
    outcomes = [bench.outcome(item, -true(item) if item is wrong else true(item)) for item in bench.items]
    headlines = bench.headlines(bench.items, outcomes)
    assert (headlines["A pairs"].official, headlines["A pairs"].n) == (0.5, 2)
    assert (headlines["A sets"].official, headlines["A sets"].n) == (0.0, 1)
    assert (headlines["B pairs"].official, headlines["B sets"].official, headlines["B sets"].n) == (1, 1, 2)


def test_means_of_spatial_questions_are_over_groups(tmp_path):
    """As What'sUp's table 1 has them: one object is as heavy as two, A as heavy as B."""
    for name in ("coco-spatial", "whatsup"):
        MAKERS[name](tmp_path)
    for name, wrong, macro, micro in (("coco-spatial", "one object", 0.5, 2 / 5), ("whatsup", "A", 0.5, None)):
        bench = load(name).build(Place(tmp_path, resolution=16))
        outcomes = [bench.outcome(item, true(item) * (-1 if item.group == wrong else 1)) for item in bench.items]
        headlines = bench.headlines(bench.items, outcomes)
        (over_groups,) = (its.official for label, its in headlines.items() if label.startswith("macro"))
        assert over_groups == macro
        assert "micro" not in headlines or headlines["micro"].official == micro


def test_means_over_relations_and_attributes(tmp_path):
    """What the official notebooks leave out is left out of the mean over groups, and of nothing else."""
    for name in ("vg-relation", "vg-attribution"):
        MAKERS[name](tmp_path)
    relation, attribution = (
        load(name).build(Place(tmp_path, resolution=16)) for name in ("vg-relation", "vg-attribution")
    )
    results = {"on": 1, "wearing": -1, "near": -1}  # "near" is excluded
    found = relation.headlines(
        relation.items, [relation.outcome(item, results[item.group] * true(item)) for item in relation.items]
    )
    assert found["macro over relations"].official == pytest.approx(0.5)
    assert found["micro"].official == pytest.approx(3 / 5)
    results = {"red_big": 1, "small_wet": -1}  # of the latter there are too few
    outcomes = [attribution.outcome(item, results[item.group] * true(item)) for item in attribution.items]
    found = attribution.headlines(attribution.items, outcomes)
    assert (found["macro over attributes"].official, found["micro"].n) == (1.0, 26)


def test_boxes_are_cut_out(tmp_path):
    MAKERS["vg-relation"](tmp_path)
    bench = load("vg-relation").build(Place(tmp_path, resolution=22))
    with Image.open(tmp_path / "aro/images/0.jpg") as whole:
        part = whole.crop((4, 2, 34, 24))  # the box reaches beyond the image
    assert (bench.images([0])[0].permute(1, 2, 0).numpy() == np.asarray(part)[:, 4:26]).all()


@pytest.mark.parametrize("squashed", [False, True])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_images_are_read_as_a_scorer_reads_them(tmp_path, squashed, interpolation):
    """By a model's own framing, as the library frames pictures."""
    MAKERS["sugarcrepe"](tmp_path)
    framing = Framing(16, squashed, interpolation)
    bench = load("sugarcrepe").build(Place(tmp_path, **framing._asdict()))
    files = [tmp_path / sugarcrepe.IMAGES / name for name in bench.files.names]
    assert torch.equal(bench.images(range(2)), framed_images(files, framing))


def test_tags_of_winoground(tmp_path):
    MAKERS["winoground"](tmp_path)
    bench = load("winoground").build(Place(tmp_path, resolution=16))
    headlines = bench.headlines(bench.items, [bench.outcome(item, true(item)) for item in bench.items])
    assert {name: its.n for name, its in headlines.items() if name.endswith("group")} == {
        "Object: group": 3,
        "Morpheme-Level: group": 2,
    }


class TestMissing:
    """Images that aren't there."""

    def test_they_are_an_error(self, tmp_path):
        MAKERS["sugarcrepe"](tmp_path)
        (tmp_path / sugarcrepe.IMAGES / "000000000002.jpg").unlink()
        with pytest.raises(UserError, match=r"1 of 2 images are missing in .*val2017, the first is '000000000002.jpg'"):
            load("sugarcrepe").build(Place(tmp_path))

    def test_they_are_left_out_where_allowed_and_counted(self, tmp_path):
        MAKERS["sugarcrepe"](tmp_path)
        (tmp_path / sugarcrepe.IMAGES / "000000000002.jpg").unlink()
        bench = load("sugarcrepe").build(Place(tmp_path, allow_missing=True))
        assert len(bench.items) == 7
        assert bench.missing == dict.fromkeys(sugarcrepe.COUNTS, 1)

    def test_a_group_without_any_is_still_there(self, tmp_path):
        MAKERS["sugarcrepe"](tmp_path)
        shutil.rmtree(tmp_path / sugarcrepe.IMAGES)
        (tmp_path / sugarcrepe.IMAGES).mkdir()
        bench = load("sugarcrepe").build(Place(tmp_path, allow_missing=True))
        assert (list(bench.groups), bench.items) == (list(sugarcrepe.COUNTS), [])

    def test_a_path_that_leads_out_is_refused(self, tmp_path):
        MAKERS["vl-checklist"](tmp_path)
        file = tmp_path / "vl_checklist/data/Attribute/vg/color.json"
        file.write_text(json.dumps([["../../../etc/passwd", {"POS": ["a"], "NEG": ["b"]}]]))
        with pytest.raises(UserError, match="leads out of the image folder"):
            load("vl-checklist").build(Place(tmp_path, allow_missing=True))


def bag_scores(item):
    """A score for each text that its bag of words decides."""
    bags = (" ".join(sorted(re.sub("[.,]", "", text.text.lower()).split())) for text in item.texts)
    return np.array([[zlib.crc32(bag.encode()) / 2**32 for bag in bags]])


@pytest.mark.skipif(not SHARED.is_dir(), reason="MENAGERIE_SHARED has no data")
class TestOfficialSugarCrepe:
    """Its real files."""

    @pytest.fixture(scope="class")
    @classmethod
    def bench(cls):
        place = Place(SHARED, 32, allow_missing=True, folders={sugarcrepe.IMAGES: SHARED / "coco-mini/val2017"})
        return load("sugarcrepe").build(place)

    def test_counts(self, bench):
        found = Counter(record.group for record in bench.records) + bench.missing
        assert found == dict(sugarcrepe.COUNTS)
        assert len(bench.items) == 26
        assert bench.images(range(len(bench.files))).shape[1:] == (3, 32, 32)

    def test_a_bag_of_words_ties(self, tmp_path):
        """Scores depend on the words alone, lower case, without full stops and commas; all images are there, empty."""
        names = {
            record["filename"]
            for part in sugarcrepe.COUNTS
            for record in json.loads((SHARED / f"sugarcrepe/{part}.json").read_text()).values()
        }
        assert len(names) == 1560
        for name in names:
            (tmp_path / name).touch()
        bench = load("sugarcrepe").build(Place(SHARED, folders={sugarcrepe.IMAGES: tmp_path}))
        outcomes = by_group(bench.items, [bench.outcome(item, bag_scores(item)) for item in bench.items])
        assert {name: len(its) for name, its in outcomes.items()} == dict(sugarcrepe.COUNTS)
        tied = {name: sum(outcome.tied for outcome in its) for name, its in outcomes.items()}
        assert (tied["swap_att"], tied["swap_obj"]) == (406, 163)
        for name in ("swap_att", "swap_obj"):
            right = sum(outcome.official for outcome in outcomes[name])
            assert sum(outcome.neutral for outcome in outcomes[name]) == right + tied[name] / 2, "a tie counts half"

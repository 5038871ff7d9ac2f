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

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks import clevr_bind, sugarcrepe
from menagerie.generators.benchmarks.benchmark import Outcome, first_of_drawn, summarise
from menagerie.generators.benchmarks.photographs import group_by_task
from menagerie.generators.benchmarks.registry import load_benchmark, names
from menagerie.generators.sources.place import Place
from menagerie.models.library.pictures import framed_images
from menagerie.models.towers.pixels import Framing
from tests.helpers.benchmark_files import MAKERS, MATRICES, tiny_tags, write_images

SHARED = Path(os.environ.get("MENAGERIE_SHARED", Path(__file__).parents[2].parent / "shared")) / "data"
# Those whose official rule takes the first of equal scores; the truth stands first there.
FIRST_COUNTS = {
    *("clevr-bind", "clevr-bind-prompted", "coco-order", "coco-spatial", "flickr-order", "gqa-spatial", "whatsup"),
}
# Tasks of which ties are drawn.
DRAWN = {*clevr_bind.RELATIONS, "left/right", "bottom/top", "blue/red", "grass/stone"}


@pytest.fixture(params=sorted(MAKERS))
def built(request, tmp_path):
    """A benchmark from tiny files, and the number of records of each task."""
    counts = MAKERS[request.param](tmp_path)
    return load_benchmark(request.param).build(Place(tmp_path, resolution=16, tag=tiny_tags)), counts


def test_every_benchmark_has_files():
    assert MAKERS.keys() | MATRICES.keys() == set(names())


def test_records_and_images_are_those_of_the_files(built):
    bench, counts = built
    assert Counter(item.task for item in bench.items) == counts
    assert list(bench.tasks) == list(dict.fromkeys(item.task for item in bench.items))
    numbers = sorted({number for item in bench.items for number in item.images})
    pixels = bench.images(numbers)
    assert pixels.shape == (len(numbers), 3, 16, 16)
    assert len({image.numpy().tobytes() for image in pixels}) == len(numbers), "images that should differ are the same"
    assert len({(item.record, item.task) for item in bench.items}) == len(bench.items)
    for item in bench.items:
        different = len({text.text for text in item.texts})
        assert different >= 2
        assert different == len(item.texts) or bench.made_texts  # a shuffle may change nothing
        assert all(text.graph.nodes == (text.text,) for text in item.texts)


def true(item):
    """1 where an image belongs with a text, else 0."""
    return np.array([[float(j in item.own(k)) for j in range(len(item.texts))] for k in range(len(item.images))])


def chance(item):
    """How often a random scorer is right."""
    k, m = true(item).shape
    return {"text": m**-k, "group": 1 / 6}.get(item.task, k**-k if k > 1 else 1 / m)


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
        assert outcome.tied == bool(ties)
        if kind == "constant":
            assert outcome.neutral == pytest.approx(chance(item))
            if item.task in DRAWN:
                continue
            first = bench.name in FIRST_COUNTS or (bench.name == "negbench" and bench.places[item.record] == 0)
            assert outcome.official == float(first)
        else:
            assert (outcome.official, outcome.neutral) == (official, neutral)
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
    draws = DRAWS if len(bench.tasks) < 20 else DRAWS // 20
    for task in bench.tasks:
        items = [item for item in bench.items if item.task == task] * draws
        outcomes = [bench.outcome(item, rng.random(true(item).shape)) for item in items]
        expected = np.array([chance(item) for item in items])
        error = 4 * np.sqrt((expected * (1 - expected)).sum()) / len(items)
        assert summarise(outcomes).official == pytest.approx(expected.mean(), abs=error)
        assert all(outcome.neutral == outcome.official and not outcome.tied for outcome in outcomes)


def test_pairs_and_sets_of_a_random_scorer_are_at_chance(tmp_path):
    """Of What'sUp, which chance reaches less often: 4000 pairs or sets of each."""
    MAKERS["whatsup"](tmp_path)
    bench = load_benchmark("whatsup").build(Place(tmp_path, resolution=16))
    rng = np.random.default_rng(0)
    items = [item._replace(cluster=f"{item.cluster} {draw}") for draw in range(2000) for item in bench.items]
    drawn = bench.headlines(items, [bench.outcome(item, rng.random((1, 4))) for item in items])
    for name, chance in (("A pairs", 1 / 16), ("B pairs", 1 / 16), ("B sets", 1 / 256)):
        assert drawn[name].official == pytest.approx(chance, abs=4 * np.sqrt(chance / 4000))


def test_tasks_of_whats_up(tmp_path):
    """Of one set all but one right: of its two pairs one, of its sets none."""
    MAKERS["whatsup"](tmp_path)
    bench = load_benchmark("whatsup").build(Place(tmp_path, resolution=16))
    wrong = next(item for item in bench.items if "under" in item.record)
    outcomes = [bench.outcome(item, -true(item) if item is wrong else true(item)) for item in bench.items]
    headlines = bench.headlines(bench.items, outcomes)
    assert (headlines["A pairs"].official, headlines["A pairs"].n) == (0.5, 2)
    assert (headlines["A sets"].official, headlines["A sets"].n) == (0.0, 1)
    assert (headlines["B pairs"].official, headlines["B sets"].official, headlines["B sets"].n) == (1, 1, 2)


def test_means_of_spatial_questions_are_over_tasks(tmp_path):
    """As What'sUp's table 1 has them: one object is as heavy as two, A as heavy as B."""
    for name in ("coco-spatial", "whatsup"):
        MAKERS[name](tmp_path)
    for name, wrong, macro, micro in (("coco-spatial", "one object", 0.5, 2 / 5), ("whatsup", "A", 0.5, None)):
        bench = load_benchmark(name).build(Place(tmp_path, resolution=16))
        outcomes = [bench.outcome(item, true(item) * (-1 if item.task == wrong else 1)) for item in bench.items]
        headlines = bench.headlines(bench.items, outcomes)
        (over_tasks,) = (its.official for label, its in headlines.items() if label.startswith("macro"))
        assert over_tasks == macro
        assert "micro" not in headlines or headlines["micro"].official == micro


def test_means_over_relations_and_attributes(tmp_path):
    """What the official notebooks leave out is left out of the mean over tasks, and of nothing else."""
    for name in ("vg-relation", "vg-attribution"):
        MAKERS[name](tmp_path)
    relation, attribution = (
        load_benchmark(name).build(Place(tmp_path, resolution=16)) for name in ("vg-relation", "vg-attribution")
    )
    results = {"on": 1, "wearing": -1, "near": -1}  # "near" is excluded
    found = relation.headlines(
        relation.items, [relation.outcome(item, results[item.task] * true(item)) for item in relation.items]
    )
    assert found["macro over relations"].official == pytest.approx(0.5)
    assert found["micro"].official == pytest.approx(3 / 5)
    results = {"red_big": 1, "small_wet": -1}  # of the latter there are too few
    outcomes = [attribution.outcome(item, results[item.task] * true(item)) for item in attribution.items]
    found = attribution.headlines(attribution.items, outcomes)
    assert (found["macro over attributes"].official, found["micro"].n) == (1.0, 26)


def test_boxes_are_cut_out(tmp_path):
    MAKERS["vg-relation"](tmp_path)
    bench = load_benchmark("vg-relation").build(Place(tmp_path, resolution=30))
    with Image.open(tmp_path / "aro/images/0.jpg") as whole:
        part = whole.crop((4, 2, 34, 42))  # the box reaches beyond the image: black, as ARO's code has it
    assert (np.asarray(part)[22:] == 0).all()
    assert (bench.images([0])[0].permute(1, 2, 0).numpy() == np.asarray(part)[5:35]).all()


@pytest.mark.parametrize(
    ("box", "problem"),
    [
        ({"bbox_x": 10, "bbox_w": 400, "bbox_h": 15}, ""),
        ({"bbox_x": -600, "bbox_w": 400, "bbox_h": 15}, ""),
        ({"bbox_w": 0}, "its box has 0 x 15 pixels"),
        ({"bbox_w": 90_000, "bbox_h": 1}, "it has 5760000 x 64 pixels, more than 64 million"),
        ({"bbox_w": 900_000, "bbox_h": 900_000}, "it has 900000 x 900000 pixels, more than 64 million"),
    ],
)
def test_a_box_is_scored_wherever_pillow_can_cut_it_out(tmp_path, box, problem):
    """A strip, a box beside the image; not one without pixels or with too many."""
    MAKERS["vg-relation"](tmp_path)
    file = tmp_path / "aro/visual_genome_relation.json"
    record = json.loads(file.read_text())[0] | {"bbox_x": 0, "bbox_y": 3, "bbox_w": 30, "bbox_h": 15} | box
    file.write_text(json.dumps([record]))
    write_images(tmp_path / "aro/images", ["0.jpg"], (500, 40))
    bench = load_benchmark("vg-relation").build(Place(tmp_path, resolution=64))
    if problem:
        with pytest.raises(UserError, match=problem):
            bench.images([0])
        return
    x, y, w, h = (record[side] for side in ("bbox_x", "bbox_y", "bbox_w", "bbox_h"))
    with Image.open(tmp_path / "aro/images/0.jpg") as whole:
        part = whole.crop((x, y, x + w, y + h)).resize((64 * w // h, 64), Image.Resampling.BICUBIC)
    left = round((part.width - 64) / 2)
    expected = np.asarray(part.crop((left, 0, left + 64, 64)))
    assert (bench.images([0])[0].permute(1, 2, 0).numpy() == expected).all()
    assert expected.any() == (x > 0)


@pytest.mark.parametrize("squashed", [False, True])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_images_are_read_as_a_scorer_reads_them(tmp_path, squashed, interpolation):
    """By a model's own framing, as the library frames pictures."""
    MAKERS["sugarcrepe"](tmp_path)
    framing = Framing(16, squashed, interpolation)
    bench = load_benchmark("sugarcrepe").build(Place(tmp_path, **framing._asdict()))
    files = [tmp_path / sugarcrepe.IMAGES / name for name in bench.files.names]
    assert torch.equal(bench.images(range(2)), framed_images(files, framing))


def test_the_scores_of_winoground_stand_before_those_of_its_tags(tmp_path):
    MAKERS["winoground"](tmp_path)
    bench = load_benchmark("winoground").build(Place(tmp_path, resolution=16))
    headlines = bench.headlines(bench.items, [bench.outcome(item, true(item)) for item in bench.items])
    assert list(headlines)[:3] == ["text", "image", "task"]
    assert {name: its.n for name, its in headlines.items() if name.endswith("task")} == {
        "group": 3,
        "Object: group": 3,
        "Morpheme-Level: group": 2,
    }


def test_vl_checklist_in_its_official_layout(tmp_path):
    """Where images are depends on the file; means are over files, then data sets, then kinds of a dimension."""
    counts = MAKERS["vl-checklist"](tmp_path)
    assert len(counts) == 56
    bench = load_benchmark("vl-checklist").build(Place(tmp_path, resolution=16))
    folders = {item.task: bench.files.names[item.images[0]] for item in bench.items}
    assert folders["Object/Size/swig_size/swig_tool/swig_tool_small"] == "swig/dialing_0.jpg"
    assert folders["Relation/hake_action"] == "hake/hcvrd/0.jpg"
    assert folders["Attribute/vaw/state"] == folders["Relation/vg/spatial"] == "vg/VG_100K/0.jpg"
    accuracy = {"swig": 0.9, "hake": 0.6, "vg": 0.6}
    points = [accuracy[bench.files.names[item.images[0]].partition("/")[0]] for item in bench.items]
    headlines = bench.headlines(bench.items, [Outcome(its, its, False) for its in points])
    assert list(headlines)[:3] == ["Object", "Attribute", "Relation"]
    for name, expected in (("Object", 0.7), ("Attribute", 0.6), ("Relation", 0.65)):
        assert headlines[name].official == pytest.approx(expected)
        assert headlines[f"{name}, first 1000"].official == pytest.approx(expected)
    (tmp_path / "vl_checklist/data/Relation/vg/spatial.json").unlink()
    with pytest.raises(UserError, match=r"spatial.json can't be read"):
        load_benchmark("vl-checklist").build(Place(tmp_path, resolution=16))


def test_relations_of_clevr_bind(tmp_path):
    """The other shape is the one that a text doesn't name; behind a prompt, texts are as the authors' code has them."""
    MAKERS["clevr-bind"](tmp_path)
    texts = {}
    for name in ("clevr-bind", "clevr-bind-prompted"):
        bench = load_benchmark(name).build(Place(tmp_path, resolution=16))
        texts[name] = [[text.text for text in item.texts] for item in bench.items if item.task == "rel val"]
    plain, prompted = texts.values()
    others = ["sphere left cube", "cube right sphere", "cylinder left sphere", "cube left cylinder"]
    assert plain[0] == ["cube left sphere", *others]
    assert prompted[0] == ["a photo of cube left sphere", *(f"a photo of{text}" for text in others)]
    assert prompted[1][0] == "a photo ofsphere right cube"
    for text in ("cube left cube", "cube left dog", "cube left sphere cylinder"):
        (tmp_path / "clevr_bind/rel/gen.json").write_text(json.dumps({"0.png": {"pos": [text]}}))
        with pytest.raises(UserError, match="no 'shape relation another_shape'"):
            load_benchmark("clevr-bind").build(Place(tmp_path))


@pytest.mark.parametrize(("tied", "chance"), [(5, 1 / 5), (2, 1 / 2), (1, 1.0)])
@pytest.mark.parametrize("others", [0.0, -1.0])
def test_drawn_ties(tied, chance, others):
    """Whichever texts are level with the true one, and the same each time."""
    for last in (False, True):
        scores = np.full((1, 5), others - 1)
        scores[0, 0] = scores[0, -(tied - 1) if last and tied > 1 else 5 :] = others
        scores[0, : 1 if last else tied] = others
        drawn = [first_of_drawn(scores, f"record {k}").official for k in range(1000)]
        assert np.mean(drawn) == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 1000))
        assert drawn[:9] == [first_of_drawn(scores, f"record {k}").official for k in range(9)]


def test_the_official_tests_of_pug_spar(tmp_path):
    """Places in their own looks alone; the false caption exchanges the animals; images may have their own folder."""
    MAKERS["pug-spar"](tmp_path)
    bench = load_benchmark("pug-spar").build(Place(tmp_path, resolution=16))
    found = {
        item.task: (bench.files.names[item.images[0]], *(text.text for text in item.texts)) for item in bench.items
    }
    assert found["left/right"] == (
        "3.png",
        "This is a photo of a Pig on the left and a Cat on the right of the picture",
        "This is a photo of a Cat on the left and a Pig on the right of the picture",
    )
    assert found["blue/red"] == (
        "0.png",
        "This is a photo of a Cat textured with Blue and a Brown_Bear textured with Red",
        "This is a photo of a Brown_Bear textured with Blue and a Cat textured with Red",
    )
    pixels = bench.images(range(4))
    (tmp_path / "pug_spar/images").mkdir()
    for image in list((tmp_path / "pug_spar").glob("*.png")):
        image.rename(tmp_path / "pug_spar/images" / image.name)
    moved = load_benchmark("pug-spar").build(Place(tmp_path, resolution=16))
    assert torch.equal(moved.images(range(4)), pixels)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (
            ("centre", "right", "Default", "Default"),
            "'character1_pos' that is none of left, right, bottom, top: 'centre'",
        ),
        (("left", "rihgt", "Default", "Default"), "'character2_pos' that is none of"),
        (("left", "blank", "Default", "Default"), "'character2_pos' that is none of"),
        (
            ("left", "right", "Defualt", "Default"),
            "'character_texture' that is none of default, blue, red, grass, stone",
        ),
        (("left", "right", "Blue", "blank"), "'character2_texture' that is none of"),
        (("right", "left", "Default", "Default"), None),
        (("left", "right", "Red", "Blue"), None),
        (("left", "right", "Blue", "blue"), None),
    ],
)
def test_places_and_textures_of_pug_spar_are_known_ones(values, problem, tmp_path):
    """What the official tests pass over is no test; what they don't know is no value of theirs."""
    counts = MAKERS["pug-spar"](tmp_path)
    with (tmp_path / "pug_spar/labels.csv").open("a", encoding="utf-8") as file:
        file.write(",".join(("0.png", "desert", "Cat", "Pig", *values)) + "\n")
    if problem:
        with pytest.raises(UserError, match=f"record 7 has a {problem}"):
            load_benchmark("pug-spar").build(Place(tmp_path, resolution=16))
    else:
        assert load_benchmark("pug-spar").build(Place(tmp_path, resolution=16)).tests() == counts


def test_ncd_passes_over_mirror_images_alone(tmp_path):
    """They have MIRROR in capitals in their names, as the paper's code tells them."""
    files = {"silver_mirror_red_apple.png", "red_apple_green_plum.webp", "red_apple_green_pear.JPG"}
    write_images(
        tmp_path / "ncd/images", [*files, "MIRROR_red_apple_green_pear.png", "red_apple_green_pear_MIRROR.jpg"]
    )
    bench = load_benchmark("ncd").build(Place(tmp_path, resolution=16))
    assert {record.name for record in bench.records} == files
    assert bench.images(range(3)).shape == (3, 3, 16, 16)


def test_both_orders_of_ncd(tmp_path):
    MAKERS["ncd"](tmp_path)
    bench = load_benchmark("ncd").build(Place(tmp_path, resolution=16))
    first, second = ([text.text for text in item.texts] for item in bench.items if "apple" in item.record)
    assert first == ["A picture of a red apple and a green pear", "A picture of a green apple and a red pear"]
    assert second == ["A picture of a green pear and a red apple", "A picture of a red pear and a green apple"]
    assert list(bench.headlines(bench.items, [first_of_drawn(np.zeros((1, 2)), "") for _ in bench.items])) == [
        "swap",
        "swap, right first",
    ]


class TestMissing:
    """Images that aren't there."""

    def test_they_are_an_error(self, tmp_path):
        MAKERS["sugarcrepe"](tmp_path)
        (tmp_path / sugarcrepe.IMAGES / "000000000002.jpg").unlink()
        with pytest.raises(UserError, match=r"1 of 2 images are missing in .*val2017, the first is '000000000002.jpg'"):
            load_benchmark("sugarcrepe").build(Place(tmp_path))

    def test_they_are_left_out_where_allowed_and_counted(self, tmp_path):
        MAKERS["sugarcrepe"](tmp_path)
        (tmp_path / sugarcrepe.IMAGES / "000000000002.jpg").unlink()
        bench = load_benchmark("sugarcrepe").build(Place(tmp_path, allow_missing=True))
        assert len(bench.items) == 7
        assert bench.missing == dict.fromkeys(sugarcrepe.COUNTS, 1)

    def test_a_task_without_any_is_still_there(self, tmp_path):
        MAKERS["sugarcrepe"](tmp_path)
        shutil.rmtree(tmp_path / sugarcrepe.IMAGES)
        (tmp_path / sugarcrepe.IMAGES).mkdir()
        bench = load_benchmark("sugarcrepe").build(Place(tmp_path, allow_missing=True))
        assert (list(bench.tasks), bench.items) == (list(sugarcrepe.COUNTS), [])


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
        place = Place(SHARED, 32, allow_missing=True, folders={sugarcrepe.IMAGES: (SHARED / "coco-mini/val2017",)})
        return load_benchmark("sugarcrepe").build(place)

    def test_counts(self, bench):
        found = Counter(record.task for record in bench.records) + bench.missing
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
        bench = load_benchmark("sugarcrepe").build(Place(SHARED, folders={sugarcrepe.IMAGES: (tmp_path,)}))
        outcomes = group_by_task(bench.items, [bench.outcome(item, bag_scores(item)) for item in bench.items])
        assert {name: len(its) for name, its in outcomes.items()} == dict(sugarcrepe.COUNTS)
        tied = {name: sum(outcome.tied for outcome in its) for name, its in outcomes.items()}
        assert (tied["swap_att"], tied["swap_obj"]) == (406, 163)
        for name in ("swap_att", "swap_obj"):
            right = sum(outcome.official for outcome in outcomes[name])
            assert sum(outcome.neutral for outcome in outcomes[name]) == right + tied[name] / 2, "a tie counts half"

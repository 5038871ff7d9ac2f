"""Benchmarks whose rule, means or files differ from others': what comes out of known scores, by hand."""

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
from menagerie.generators.benchmarks import caption_pairs, crepe, four_way
from menagerie.generators.benchmarks.benchmark import (
    Outcome,
    first_of_best,
    first_of_shuffled,
    texts_chosen,
)
from menagerie.generators.benchmarks.caption_pairs import both_above
from menagerie.generators.benchmarks.matrix import is_among_best, rank_candidates
from menagerie.generators.benchmarks.photographs import ItemBenchmark, group_by_task
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.sources.kept_out import COCO, VISUAL_GENOME, PhotographId
from menagerie.generators.sources.place import Place
from menagerie.models.library.pictures import frame_images
from menagerie.models.towers.preparation import Framing
from tests.helpers.benchmark_files import (
    IMAGES,
    MAKERS,
    build,
    captions_of,
    make,
    make_karpathy_test,
    outcomes_of,
    truth,
    write_csv,
    write_images,
    write_json,
)

SHARED = Path(os.environ.get("MENAGERIE_SHARED", Path(__file__).parents[2].parent / "shared")) / "data"
# All right; each image prefers its text, but not the other way; all equal.
RIGHT, TEXT_ALONE, LEVEL = [[2, 1], [1, 2]], [[2, 1], [3, 4]], [[1, 1], [1, 1]]


def headlines(bench, score):
    """The headlines of a benchmark under the scores that `score` gives each item."""
    return bench.headlines(bench.items, [bench.outcome(item, np.array(score(item), float)) for item in bench.items])


def scored(bench, score):
    """Of each headline: official accuracy, accuracy with ties shared, share of ties, number of records."""
    return {name: pytest.approx(tuple(its)) for name, its in headlines(bench, score).items()}


def texts_of(item):
    return [text.text for text in item.texts]


# Two images and two texts


def test_four_way_items_have_three_scores_and_those_of_their_tags(tmp_path):
    """The first record, which lacks one of two tags, is all right."""
    bench = make("winoground", tmp_path)
    matrices = dict(zip(dict.fromkeys(item.cluster for item in bench.items), (RIGHT, TEXT_ALONE, LEVEL), strict=True))
    found = scored(bench, lambda item: matrices[item.cluster])
    two = {"text": (1 / 2, 1.25 / 2, 1 / 2, 2), "image": (0, 1 / 8, 1 / 2, 2), "group": (0, 1 / 12, 1 / 2, 2)}
    three = {
        "text": (2 / 3, 2.25 / 3, 1 / 3, 3),
        "image": (1 / 3, 1.25 / 3, 1 / 3, 3),
        "group": (1 / 3, (1 + 1 / 6) / 3, 1 / 3, 3),
    }
    tags = {"Object": three, "Morpheme-Level": two}
    assert found == three | {f"{tag}: {rule}": its for tag, own in tags.items() for rule, its in own.items()}
    assert list(found)[:3] == ["text", "image", "group"]
    tagged = headlines(make("bivlc", tmp_path), truth)
    assert {name.partition(":")[0]: its.n for name, its in tagged.items()} == dict.fromkeys(two, 3) | {
        "replace": 1,
        "swap": 2,
    }


def test_images_and_texts_are_as_the_files_pair_them(tmp_path):
    pairs = {
        name: [(image.file, text) for image, text in zip(record.images, record.texts, strict=True)]
        for name in ("bivlc", "cola", "colorswap", "winoground")
        for record in make(name, tmp_path).records[:1]
    }
    assert pairs == {
        "bivlc": [("0.jpg", "a cat 0"), ("false/0.png", "a dog 0")],
        "cola": [("1.jpg", "red cat 0"), ("2.jpg", "white cat 0")],
        "colorswap": [("img_0_1.png", "a red cat and a blue cup 0"), ("img_0_2.png", "a blue cat and a red cup 0")],
        "winoground": [("ex_0_img_0.png", "a cat on dog 0"), ("ex_0_img_1.png", "a dog on cat 0")],
    }


# Ties


@pytest.mark.parametrize(("tied", "chance"), [(5, 1 / 5), (2, 1 / 2), (1, 1.0)])
@pytest.mark.parametrize("others", [0.0, -1.0])
def test_ties_broken_at_random_are_won_at_chance_and_alike_each_time(tied, chance, others):
    for last in (False, True):
        scores = np.full((1, 5), others - 1)
        scores[0, 0] = scores[0, -(tied - 1) if last and tied > 1 else 5 :] = others
        scores[0, : 1 if last else tied] = others
        drawn = [first_of_shuffled(scores, f"record {k}").official for k in range(1000)]
        assert np.mean(drawn) == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 1000))
        assert drawn[:9] == [first_of_shuffled(scores, f"record {k}").official for k in range(9)]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([3, 2, 1], (1, 1, False)),
        ([2, 3, 1], (1, 1, False)),
        ([3, 1, 1], (0, 1 / 2, True)),
        ([1, 1, 1], (0, 1 / 3, True)),
        ([3, 0, 1], (0, 0, False)),
        ([1, 0, 1], (0, 0, False)),
    ],
)
def test_both_true_captions_of_sugarcrepe_pp_must_be_above_the_false_one(row, expected):
    assert both_above(np.array([row], float)) == Outcome(*expected)


def test_mmvp_takes_the_second_of_level_images(tmp_path):
    bench, rule = make("mmvp-vlm", tmp_path), four_way.second_of_level
    assert texts_of(bench.items[2]) == [f"a photo of a cat that looks to side {k}" for k in (5, 6)]
    assert [image.file for image in bench.records[2].images] == ["Camera Perspective/5.jpg", "Camera Perspective/6.jpg"]
    assert rule(np.array([[2.0, 1.0], [1.0, 1.0]])) == Outcome(1.0, 0.5, True)
    assert rule(np.array([[1.0, 0.0], [1.0, 2.0]])) == Outcome(0.0, 0.5, True)
    assert rule(np.array(LEVEL, float)) == Outcome(0.0, 0.25, True)
    found = scored(bench, lambda item: RIGHT if item.record == "1 2" else TEXT_ALONE)
    assert found == {"macro over patterns": (1 / 4, 1 / 4, 0, 3)}


def test_another_rule_changes_the_content_by_which_scores_are_kept(tmp_path):
    records = make("mmvp-vlm", tmp_path).records
    one, two, three = (
        list(ItemBenchmark("m", four_way.MMVP_IMAGES, records, Place(tmp_path, 16), rule).content())
        for rule in (texts_chosen, first_of_best, {"a": texts_chosen, "b": first_of_best})
    )
    assert one != two != three != one


def test_ranks_of_candidates_by_hand():
    """Candidates 1 and 4 are true; the best of them ties with a false one before it and one behind it."""
    ranked = rank_candidates(np.array([0.9, 0.2, 0.5, 0.1, 0.5, 0.5], np.float32), np.array([1, 4]))
    assert ranked == (4, 0, 1, (2, 1), 1)
    assert is_among_best(ranked, 1) == Outcome(0.0, 0.0, False)
    assert is_among_best(ranked, 2) == Outcome(0.0, pytest.approx(1 / 3), True)
    assert is_among_best(ranked, 3) == Outcome(1.0, pytest.approx(2 / 3), True)
    assert is_among_best(ranked, 4) == is_among_best(ranked, 9) == Outcome(1.0, 1.0, False)


# Means


def test_pairs_and_sets_of_whatsup_are_right_if_all_their_images_are(tmp_path):
    bench = make("whatsup", tmp_path)
    found = headlines(bench, lambda item: truth(item) * (-1 if "under" in item.record else 1))
    assert (found["A pairs"].official, found["A pairs"].n) == (0.5, 2)
    assert (found["A sets"].official, found["A sets"].n) == (0.0, 1)
    assert (found["B pairs"].official, found["B sets"].official, found["B sets"].n) == (1, 1, 2)


@pytest.mark.parametrize(
    ("name", "wrong", "expected"),
    [
        ("coco-spatial", ("one object",), {"macro over one object and two": 1 / 2, "micro": 2 / 5}),
        ("whatsup", ("A",), {"macro over A and B": 1 / 2}),
        ("vg-relation", ("wearing", "near"), {"macro over relations": 1 / 2, "micro": 3 / 5}),  # "near" is excluded
        ("vg-attribution", ("small_wet",), {"macro over attributes": 1.0, "micro": 25 / 26}),  # has too few records
        ("sugarcrepe", ("swap_obj",), {"macro": 6 / 7, "micro": 12 / 14}),
    ],
)
def test_means_over_tasks_and_over_records(name, wrong, expected, tmp_path):
    found = headlines(make(name, tmp_path), lambda item: truth(item) * (-1 if item.task in wrong else 1))
    assert {label: found[label].official for label in expected} == pytest.approx(expected)


def test_sugarcrepe_pp_by_file(tmp_path):
    """Of swap_obj one record is level; of swap_att both true captions are right, the second by more."""
    rows = {"swap_obj 1": [[1, 1, 1]], "swap_att 0": [[2, 3, 1]], "replace_rel 0": [[1, 0, 3]]}
    found = scored(make("sugarcrepe-pp", tmp_path), lambda item: rows.get(item.record, [[3, 2, 1]]))
    assert found == {"micro": (8 / 10, (8 + 1 / 3) / 10, 1 / 10, 10), "macro": (4 / 5, (4 + 1 / 6) / 5, 1 / 10, 10)}


def test_valse_counts_what_annotators_confirm_and_its_mean_is_over_files(tmp_path):
    """Seven files lack an image, of which one record remains each."""
    MAKERS["valse"](tmp_path)
    (tmp_path / "valse/images/v7w_1.jpg").unlink()
    bench = build("valse", tmp_path, allow_missing=True)
    assert bench.missing == {name: 1 for name in bench.tasks if name not in ("foil-it", "coreference-hard")}
    rows = {"existence existence_0": [[1, 2]], "foil-it foil-it_0": [[1, 1]]}
    found = scored(bench, lambda item: rows.get(item.record, [[2, 1]]))
    assert found == {"macro": (9.5 / 11, 9.75 / 11, 0.5 / 11, 13), "micro": (11 / 13, 11.5 / 13, 1 / 13, 13)}


def test_vl_checklist_in_its_official_layout(tmp_path):
    """Where images are depends on the file; means are over files, then data sets, then kinds of a dimension."""
    bench = make("vl-checklist", tmp_path)
    folders = {item.task: bench.files.names[item.images[0]] for item in bench.items}
    assert len(folders) == 56
    assert folders["Object/Size/swig_size/swig_tool/swig_tool_small"] == "swig/dialing_0.jpg"
    assert folders["Relation/hake_action"] == "hake/hcvrd/0.jpg"
    assert folders["Attribute/vaw/state"] == folders["Relation/vg/spatial"] == "vg/VG_100K/0.jpg"
    accuracy = {"swig": 0.9, "hake": 0.6, "vg": 0.6}
    points = [accuracy[bench.files.names[item.images[0]].partition("/")[0]] for item in bench.items]
    found = bench.headlines(bench.items, [Outcome(its, its, False) for its in points])
    assert list(found)[:3] == ["Object", "Attribute", "Relation"]
    for name, expected in (("Object", 0.7), ("Attribute", 0.6), ("Relation", 0.65)):
        assert found[name].official == found[f"{name}, first 1000"].official == pytest.approx(expected)


def test_the_mean_over_classes_is_not_that_over_images(tmp_path):
    """Right on the digit 1 alone: two of 15 images, one of ten classes."""
    bench, ones = make("zero-shot", tmp_path), np.eye(10, dtype=np.float32)[1]
    found = bench.headlines(*outcomes_of(bench, lambda true: np.tile(ones, (15, 1)) if len(true) == 15 else true))
    assert found["mnist acc1"].official == pytest.approx(2 / 15)
    assert found["mnist mean per-class recall"].official == pytest.approx(1 / 10)


# Texts and images


def test_relations_of_clevr_bind(tmp_path):
    """The other shape is the one that a text doesn't name; behind a prompt, texts are as the authors' code has them."""
    plain, prompted = (
        [texts_of(item) for item in make(name, tmp_path).items if item.task == "rel val"]
        for name in ("clevr-bind", "clevr-bind-prompted")
    )
    others = ["sphere left cube", "cube right sphere", "cylinder left sphere", "cube left cylinder"]
    assert plain[0] == ["cube left sphere", *others]
    assert prompted[0] == ["a photo of cube left sphere", *(f"a photo of{text}" for text in others)]
    assert prompted[1][0] == "a photo ofsphere right cube"


def test_the_official_tests_of_pug_spar(tmp_path):
    """Places in their own looks alone; the false caption exchanges the animals."""
    bench = make("pug-spar", tmp_path)
    found = {item.task: (bench.files.names[item.images[0]], *texts_of(item)) for item in bench.items}
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
    counts = bench.tests()
    with (tmp_path / "pug_spar/labels.csv").open("a", encoding="utf-8") as file:  # what the official tests pass over
        for values in ("right,left,Default,Default", "left,right,Red,Blue", "left,right,Blue,blue"):
            file.write(f"0.png,desert,Cat,Pig,{values}\n")
    assert build("pug-spar", tmp_path).tests() == counts


def test_pug_spare_exchanges_textures(tmp_path):
    bench = make("pug-spare", tmp_path)
    assert texts_of(bench.items[0]) == ["Red Bear and Grass Cat", "Grass Bear and Red Cat"]
    rows = {"Desert/0.png": [[2, 1]], "Desert/1.png": [[1, 1]], "Island/0.png": [[1, 2]]}
    assert scored(bench, lambda item: rows[item.record]) == {"all": (1 / 3, 1.5 / 3, 1 / 3, 3)}


def test_both_orders_of_ncd_without_mirror_images(tmp_path):
    """These have MIRROR in capitals in their names, as the paper's code tells them."""
    bench = make("ncd", tmp_path)
    first, second = (texts_of(item) for item in bench.items if "apple" in item.record)
    assert first == ["A picture of a red apple and a green pear", "A picture of a green apple and a red pear"]
    assert second == ["A picture of a green pear and a red apple", "A picture of a red pear and a green apple"]
    assert list(headlines(bench, truth)) == ["swap", "swap, right first"]
    files = {"silver_mirror_red_apple.png", "red_apple_green_plum.webp", "red_apple_green_pear.JPG"}
    mirrored = ("MIRROR_red_apple_green_pear.png", "red_apple_green_pear_MIRROR.jpg")
    write_images(tmp_path / "more/ncd/images", [*files, *mirrored])
    assert {record.name for record in build("ncd", tmp_path / "more").records} == files


def test_photographs_of_other_collections_are_not_taken_for_cocos(tmp_path):
    """VisDial has photographs of its own, Visual7W those of Visual Genome."""
    MAKERS["valse"](tmp_path)
    of = lambda name: set(load_benchmark("valse").photographs(tmp_path / f"valse/data/{name}.json"))  # noqa: E731
    assert of("coreference-hard") == set()
    assert of("foil-it") == {PhotographId(COCO, 1)}
    assert of("plurals") == {PhotographId(VISUAL_GENOME, 0), PhotographId(VISUAL_GENOME, 1)}


@pytest.mark.parametrize(
    ("box", "problem"),
    [
        ({"bbox_x": 4, "bbox_y": 2, "bbox_h": 40}, ""),
        ({"bbox_x": 10, "bbox_w": 400, "bbox_h": 15}, ""),
        ({"bbox_x": -600, "bbox_w": 400, "bbox_h": 15}, ""),
        ({"bbox_w": 0}, "its box has 0 x 15 pixels"),
        ({"bbox_w": 90_000, "bbox_h": 1}, "it has 5760000 x 64 pixels, more than 64 million"),
        ({"bbox_w": 900_000, "bbox_h": 900_000}, "it has 900000 x 900000 pixels, more than 64 million"),
    ],
)
def test_boxes_are_cut_out_as_pillow_does(tmp_path, box, problem):
    """Also a strip and a box beside the image, black as ARO's code has it; not one without pixels or with too many."""
    MAKERS["vg-relation"](tmp_path)
    file = tmp_path / "aro/visual_genome_relation.json"
    record = json.loads(file.read_text())[0] | {"bbox_x": 0, "bbox_y": 3, "bbox_w": 30, "bbox_h": 15} | box
    write_json(file, [record])
    write_images(tmp_path / "aro/images", ["0.jpg"], (500, 40))
    bench = build("vg-relation", tmp_path, resolution=64)
    if problem:
        with pytest.raises(UserError, match=problem):
            bench.images([0])
        return
    x, y, w, h = (record[side] for side in ("bbox_x", "bbox_y", "bbox_w", "bbox_h"))
    size = [64 * side // min(w, h) for side in (w, h)]
    with Image.open(tmp_path / "aro/images/0.jpg") as whole:
        part = whole.crop((x, y, x + w, y + h)).resize(size, Image.Resampling.BICUBIC)
    left, top = (round((side - 64) / 2) for side in size)
    expected = np.asarray(part.crop((left, top, left + 64, top + 64)))
    assert (bench.images([0])[0].permute(1, 2, 0).numpy() == expected).all()
    assert expected.any() == (x > 0)


@pytest.mark.parametrize("squashed", [False, True])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_images_are_framed_as_the_library_frames_pictures(tmp_path, squashed, interpolation):
    framing = Framing(16, squashed, interpolation)
    bench = make("sugarcrepe", tmp_path, **framing._asdict())
    files = [tmp_path / caption_pairs.IMAGES / name for name in bench.files.names]
    assert torch.equal(bench.images(range(2)), frame_images(files, framing))


# Retrieval and classes


def test_compositions_of_imagenet_ao_are_one_pool(tmp_path):
    """A record of each picture has its own text alone: with all of them it would take gigabytes."""
    for name in (f"{attribute}_{obj}/0.png" for attribute in range(12) for obj in range(10)):
        path = tmp_path / "imagenet_ao/images" / name
        path.parent.mkdir(parents=True)
        path.touch()
    bench = build("imagenet-ao", tmp_path)
    (pool,) = bench.pools
    assert (len(pool.texts), len(pool.images), len(pool.pairs)) == (120, 120, 120)
    assert all(len(record.texts) == 1 for record in bench.records)
    assert list(bench.headlines(*outcomes_of(bench, lambda true: true))) == ["acc1", "acc5", "mean per-class recall"]


@pytest.mark.parametrize(("name", "folder"), [("retrieval-coco", "coco"), ("retrieval-flickr30k", "flickr30k")])
def test_all_forms_of_karpathys_split_are_the_same(name, folder, tmp_path):
    bench, (own, blip) = make(name, tmp_path), (tmp_path / form for form in load_benchmark(name).one_of)
    assert [text[0].text for text in bench.pools[0].texts] == [t for k in range(IMAGES) for t in captions_of(k)]
    own.unlink()
    make_karpathy_test(blip, folder)
    assert build(name, tmp_path).pools == bench.pools


def test_texts_without_a_word_left_are_no_candidates(tmp_path):
    """A caption that is gone is no query; an image that has none left neither, but it stays a candidate."""
    bench = make("retrieval-coco", tmp_path)
    gone = {text for text in bench.texts if text.text.startswith(("a small cat beside 2", "2 dogs"))}
    assert len(gone) == 2
    made = bench.reword({text: text._replace(text="") if text in gone else text for text in bench.texts})
    (pool,), (before,) = made.pools, bench.pools
    assert (len(pool.images), len(pool.texts)) == (IMAGES, len(before.texts) - 2)
    assert made.tests()["I2T R@1"] == IMAGES - 1
    assert all(outcome.official == 1 for outcome in outcomes_of(made, lambda true: true)[1])


def test_classes_and_templates(tmp_path):
    pools = make("zero-shot", tmp_path).pools
    texts = {pool.name: [[phrasing.text for phrasing in text] for text in pool.texts] for pool in pools}
    assert texts["fruit"] == [["a photo of a pear."], ["a photo of a red apple."]]
    assert texts["mine"] == [["a cat", "many cats"], ["a dog", "many dogs"]]
    assert [text for (text,) in texts["mnist"]] == [f'a photo of the number: "{k}".' for k in range(10)]


TORCHVISION = "zero-shot-torchvision"


def test_labels_and_classes_of_torchvision(tmp_path):
    """By the number of a class: from 1 (pets), by the alphabet or a list."""
    true = {p.name: [p.texts[column][0].text for _, column in p.pairs] for p in make(TORCHVISION, tmp_path).pools}
    assert true["pets"] == ["a photo of a Abyssinian, a type of pet.", "a photo of a Beagle, a type of pet."]
    assert true["dtd"][2:4] == ["a photo of a dotted texture."] * 2
    assert true["fgvc_aircraft"][1] == "a photo of a 307-300 ER, a type of aircraft."
    assert true["food101"][:3] == ["a photo of pie 0, a type of food.", *["a photo of pie 1, a type of food."] * 2]


# Files with a fault


def text(file, content):
    """Write a text file anew."""
    return lambda root: (root / file).write_text(content)


def replace(file, old, new):
    return lambda root: (root / file).write_text((root / file).read_text().replace(old, new))


def remove(file):
    return lambda root: shutil.rmtree(root / file) if (root / file).is_dir() else (root / file).unlink()


def spar_line(*values):
    line = ",".join(("0.png", "desert", "Cat", "Pig", *values))
    return lambda root: (root / "pug_spar/labels.csv").open("a", encoding="utf-8").write(f"{line}\n")


def relation(words):
    return text("clevr_bind/rel/gen.json", json.dumps({"0.png": {"pos": [words]}}))


def vote(root):
    record = {"image_file": "v7w_0.jpg", "caption": "a", "foil": "b", "mturk": {"caption": "3"}}
    write_json(root / "valse/data/plurals.json", {"a": record})


def lone_types(root):
    write_csv(root / four_way.MMVP, ("Question ID", "Type", "Statement"), [(1, "Text", "cat"), (2, "Color", "dog")])


def empty_folders(root):
    for folder in (root / "zero_shot").iterdir():
        shutil.rmtree(folder)


NO_SHAPES = "no 'shape relation another_shape'"
T = "torchvision/"
FAULTS = [
    ("bivlc", replace("bivlc/test.jsonl", '"type"', '"other"'), "has no 'type'"),
    ("clevr-bind", relation("cube left cube"), NO_SHAPES),
    ("clevr-bind", relation("cube left dog"), NO_SHAPES),
    ("clevr-bind", relation("cube left sphere cylinder"), NO_SHAPES),
    (
        "cola",
        text("cola/COLA_multiobjects_matching_benchmark.json", '[["1.jpg", "a", "2.jpg"]]'),
        "[0] is no list of 4",
    ),
    ("crepe-productivity", replace(crepe.PRODUCTIVITY["atom 4"], ",0,2,30,", ",left,2,30,"), "'x' that is no int or"),
    (
        "spec",
        replace("spec/count/text2image.json", '"label": 2', '"label": 3'),
        "'label' that is no whole number from 0 to 2",
    ),
    ("colorswap", replace("colorswap/test.json", '"caption_2"', '"other"'), "has no 'caption_2'"),
    ("mmvp-vlm", lone_types, "record 1 has no partner of its 'Type'"),
    ("mmvp-vlm", replace(four_way.MMVP, "Question ID,", ""), "has no column 'Question ID'"),
    ("pug-spar", spar_line("centre", "right", "Default", "Default"), "of left, right, bottom, top: 'centre'"),
    ("pug-spar", spar_line("left", "blank", "Default", "Default"), "record 7 has a 'character2_pos' that is none of"),
    ("pug-spar", spar_line("left", "right", "Defualt", "Default"), "none of default, blue, red, grass, stone: 'Def"),
    ("pug-spar", spar_line("left", "right", "Blue", "blank"), "'character2_texture' that is none of"),
    (
        "pug-spare",
        text("pug_spare/PUG_SPARE.csv", "filename,world_name\n0.png,Desert\n"),
        "has no column 'character_name'",
    ),
    ("retrieval-coco", remove("coco/dataset_coco.json"), "there is neither"),
    ("sugarcrepe-pp", replace("sugarcrepe_pp/swap_obj.json", '"caption2"', '"other"'), "has no 'caption2'"),
    ("valse", vote, "a.mturk has a 'caption' that is no int or float"),
    ("vl-checklist", remove("vl_checklist/data/Relation/vg/spatial.json"), "spatial.json can't be read"),
    (
        "zero-shot",
        remove("zero_shot/mnist/7"),
        "9 folders for the 10 classes of mnist: there is no folder for ['7']; copy",
    ),
    ("zero-shot", remove("zero_shot/mnist/8/0.png"), "the class '8' in"),
    ("zero-shot", remove("zero_shot/mine/classes.txt"), "class 'n00000000' in"),
    ("zero-shot", text("zero_shot/mine/classes.txt", "n00000000\tcat\n"), "has 1 lines for 2 folders"),
    ("zero-shot", text("zero_shot/mine/classes.txt", "a\tb\n\nc\td\n"), "classes.txt has an empty line"),
    ("zero-shot", text("zero_shot/mine/templates.txt", "a photo\n"), "a template without {c}: 'a photo'"),
    ("zero-shot", remove("zero_shot/fruit/pear"), "has 1 folders of classes"),
    ("zero-shot", empty_folders, "there are no folders in"),
    (TORCHVISION, text(f"{T}dtd/dtd/labels/test1.txt", "../../x.jpg\na/b.jpg\n"), "leads out of the folder"),
    (TORCHVISION, text(f"{T}oxford-iiit-pet/annotations/test.txt", "a b\n"), "without the number of a"),
    (TORCHVISION, text(f"{T}fgvc-aircraft-2013b/data/variants.txt", "a\nb\n"), "is none of the 2"),
    (TORCHVISION, text(f"{T}food-101/meta/test.json", '{"a": ["a/0"]}'), "its 1 classes"),
    (TORCHVISION, remove(f"{T}food-101/images/pie_3/0.jpg"), "1 of 25 images are missing"),
    *(
        ("ncd", text(f"ncd/images/{name}", ""), repr(name))
        for name in ("a.png", "red_apple.png", "a_b_c_d_2.png", "a\n.png")
    ),
    ("ncd", text(b"ncd/images/\xff_a_red_b.png".decode(errors="surrogateescape"), ""), "half a character"),
]


@pytest.mark.parametrize(("name", "spoil", "problem"), FAULTS)
def test_a_file_with_a_fault_is_refused_by_name(name, spoil, problem, tmp_path):
    MAKERS[name](tmp_path)
    spoil(tmp_path)
    with pytest.raises(UserError) as error:
        build(name, tmp_path)
    assert problem in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_pool_of_one_image_is_refused(tmp_path):
    MAKERS["retrieval-coco"](tmp_path)
    for k in range(1, IMAGES):
        (tmp_path / f"coco/val2014/COCO_val2014_{k:012d}.jpg").unlink()
    with pytest.raises(UserError, match="1 images are there, and retrieval needs at least 2"):
        build("retrieval-coco", tmp_path, allow_missing=True)


# Real files


def bag_scores(item):
    """A score for each text that its bag of words decides, in lower case, without full stops and commas."""
    bags = (" ".join(sorted(re.sub("[.,]", "", text.text.lower()).split())) for text in item.texts)
    return np.array([[zlib.crc32(bag.encode()) / 2**32 for bag in bags]])


@pytest.mark.skipif(not SHARED.is_dir(), reason="MENAGERIE_SHARED has no data")
def test_sugarcrepes_own_files_have_their_counts_and_ties_of_bags_of_words(tmp_path):
    mini = {caption_pairs.IMAGES: (SHARED / "coco-mini/val2017",)}
    bench = load_benchmark("sugarcrepe").build(Place(SHARED, 32, allow_missing=True, folders=mini))
    assert Counter(record.task for record in bench.records) + bench.missing == dict(caption_pairs.SUGARCREPE)
    assert len(bench.items) == 26
    assert bench.images(range(len(bench.files))).shape[1:] == (3, 32, 32)
    files = (json.loads((SHARED / f"sugarcrepe/{part}.json").read_text()).values() for part in caption_pairs.SUGARCREPE)
    for name in (names := {record["filename"] for records in files for record in records}):
        (tmp_path / name).touch()
    assert len(names) == 1560
    bench = load_benchmark("sugarcrepe").build(Place(SHARED, folders={caption_pairs.IMAGES: (tmp_path,)}))
    outcomes = group_by_task(bench.items, [bench.outcome(item, bag_scores(item)) for item in bench.items])
    assert {name: len(its) for name, its in outcomes.items()} == dict(caption_pairs.SUGARCREPE)
    tied = {name: sum(outcome.tied for outcome in its) for name, its in outcomes.items()}
    assert (tied["swap_att"], tied["swap_obj"]) == (406, 163)
    for name in ("swap_att", "swap_obj"):
        right = sum(outcome.official for outcome in outcomes[name])
        assert sum(outcome.neutral for outcome in outcomes[name]) == right + tied[name] / 2, "a tie counts half"

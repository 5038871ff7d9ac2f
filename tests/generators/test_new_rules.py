"""A scorer whose scores are known, on the benchmarks that have a rule of their own: what comes out, by hand."""

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks import mmvp_vlm, valse
from menagerie.generators.benchmarks.benchmark import Outcome, ScoredItem, first_of_best, texts_chosen
from menagerie.generators.benchmarks.photographs import ItemBenchmark
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.benchmarks.sugarcrepe import both_above
from menagerie.generators.sources.kept_out import COCO, VISUAL_GENOME, PhotographId
from menagerie.generators.sources.place import Place
from menagerie.studies.scoring.benchmark_piece import preferences
from tests.helpers.benchmark_files import MAKERS, write_csv, write_json

NEW = ("bivlc", "cola", "colorswap", "mmvp-vlm", "pug-spare", "sugarcrepe-pp", "valse")
# All right; each image prefers its text, but not the other way; all level.
RIGHT, TEXT_ALONE, LEVEL = [[2, 1], [1, 2]], [[2, 1], [3, 4]], [[1, 1], [1, 1]]


def scored(bench, score):
    """The headlines under scores of each item: official, ties shared, ties, records."""
    outcomes = [bench.outcome(item, np.array(score(item), float)) for item in bench.items]
    return {name: pytest.approx(tuple(its)) for name, its in bench.headlines(bench.items, outcomes).items()}


def build(name, root, **options):
    return load_benchmark(name).build(Place(root, 16, **options))


@pytest.mark.parametrize(
    ("name", "matrices", "expected"),
    [
        (
            "bivlc",
            [RIGHT, TEXT_ALONE, LEVEL],
            {
                "text": (2 / 3, 2.25 / 3, 1 / 3, 3),
                "image": (1 / 3, 1.25 / 3, 1 / 3, 3),
                "task": (1 / 3, (1 + 1 / 6) / 3, 1 / 3, 3),
                **{f"replace: {rule}": (1, 1, 0, 1) for rule in ("text", "image", "group")},
                **{"swap: text": (1 / 2, 1.25 / 2, 1 / 2, 2), "swap: image": (0, 1 / 8, 1 / 2, 2)},
                "swap: group": (0, 1 / 12, 1 / 2, 2),
            },
        ),
        *(
            (
                name,
                [TEXT_ALONE, LEVEL],
                {
                    "text": (1 / 2, 1.25 / 2, 1 / 2, 2),
                    "image": (0, 1 / 8, 1 / 2, 2),
                    "task": (0, 1 / 12, 1 / 2, 2),
                },
            )
            for name in ("cola", "colorswap")
        ),
    ],
)
def test_two_images_and_two_texts(name, matrices, expected, tmp_path):
    """Its rules come first, then its parts."""
    MAKERS[name](tmp_path)
    bench = build(name, tmp_path)
    records = list(dict.fromkeys(item.cluster for item in bench.items))
    found = scored(bench, lambda item: matrices[records.index(item.cluster)])
    assert found == expected
    assert list(found)[:3] == ["text", "image", "task"]


def test_images_and_texts_are_as_the_files_pair_them(tmp_path):
    for name in ("bivlc", "cola", "colorswap"):
        MAKERS[name](tmp_path)
    pairs = {
        name: [(record.images[k].file, record.texts[k]) for record in build(name, tmp_path).records[:1] for k in (0, 1)]
        for name in ("bivlc", "cola", "colorswap")
    }
    assert pairs["bivlc"] == [("0.jpg", "a cat 0"), ("false/0.png", "a dog 0")]
    assert pairs["cola"] == [("1.jpg", "red cat 0"), ("2.jpg", "white cat 0")]
    assert pairs["colorswap"][1] == ("img_0_2.png", "a blue cat and a red cup 0")


def test_another_rule_is_another_benchmark_to_those_who_keep_scores(tmp_path):
    MAKERS["mmvp-vlm"](tmp_path)
    bench = build("mmvp-vlm", tmp_path)
    by_rule = [
        list(ItemBenchmark("m", mmvp_vlm.IMAGES, bench.records, Place(tmp_path, 16), rule).content())
        for rule in (texts_chosen, first_of_best, {"a": texts_chosen, "b": first_of_best})
    ]
    assert by_rule[0] != by_rule[1] != by_rule[2] != by_rule[0]


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
def test_both_true_captions_are_above_the_false_one(row, expected):
    """SugarCrepe++: at a level of three each order is as likely; one below is wrong whatever the other is."""
    assert both_above(np.array([row], float)) == Outcome(*expected)


def test_a_second_true_caption_is_never_shown_as_a_false_one(tmp_path):
    """The report shows the true caption that is below the false one."""
    MAKERS["sugarcrepe-pp"](tmp_path)
    bench = build("sugarcrepe-pp", tmp_path)
    for row, expected in (([1, 9, 0], None), ([9, 1, 5], (1, [1.0, 5.0])), ([1, 9, 5], (0, [1.0, 5.0]))):
        item, scores = bench.items[0], np.array([row], float)
        found = list(preferences(ScoredItem(item, scores, bench.outcome(item, scores))))
        shown = [(its["true"], its["preferred"], its["scores"]) for its in found]
        texts = [text.text for text in item.texts]
        assert shown == ([] if expected is None else [(texts[expected[0]], texts[2], expected[1])])


def test_sugarcrepe_pp_by_file(tmp_path):
    """Of swap_obj one record is level; of swap_att both true captions are right, the second by more."""
    MAKERS["sugarcrepe-pp"](tmp_path)
    bench = build("sugarcrepe-pp", tmp_path)
    rows = {"swap_obj 1": [[1, 1, 1]], "swap_att 0": [[2, 3, 1]], "replace_rel 0": [[1, 0, 3]]}
    found = scored(bench, lambda item: rows.get(item.record, [[3, 2, 1]]))
    assert found == {"micro": (8 / 10, (8 + 1 / 3) / 10, 1 / 10, 10), "macro": (4 / 5, (4 + 1 / 6) / 5, 1 / 10, 10)}


def test_valse_counts_what_annotators_confirm_and_its_mean_is_over_files(tmp_path):
    """Seven files lack an image, of which one record remains each."""
    MAKERS["valse"](tmp_path)
    (tmp_path / "valse/images/v7w_1.jpg").unlink()
    with pytest.raises(UserError, match=r"images are missing in .*valse/images, the first is 'v7w_1.jpg'"):
        build("valse", tmp_path)
    bench = build("valse", tmp_path, allow_missing=True)
    assert bench.missing == {name: 1 for name in bench.tasks if name not in ("foil-it", "coreference-hard")}
    rows = {"existence existence_0": [[1, 2]], "foil-it foil-it_0": [[1, 1]]}
    found = scored(bench, lambda item: rows.get(item.record, [[2, 1]]))
    assert found == {"macro": (9.5 / 11, 9.75 / 11, 0.5 / 11, 13), "micro": (11 / 13, 11.5 / 13, 1 / 13, 13)}


def test_mmvp_takes_the_second_of_level_images(tmp_path):
    MAKERS["mmvp-vlm"](tmp_path)
    bench = build("mmvp-vlm", tmp_path)
    assert [text.text for text in bench.items[2].texts] == [f"a photo of a cat that looks to side {k}" for k in (5, 6)]
    assert [image.file for image in bench.records[2].images] == ["Camera Perspective/5.jpg", "Camera Perspective/6.jpg"]
    rule = mmvp_vlm.second_of_level
    assert rule(np.array([[2.0, 1.0], [1.0, 1.0]])) == Outcome(1.0, 0.5, True)
    assert rule(np.array([[1.0, 0.0], [1.0, 2.0]])) == Outcome(0.0, 0.5, True)
    assert rule(np.array(LEVEL, float)) == Outcome(0.0, 0.25, True)
    found = scored(bench, lambda item: RIGHT if item.record == "1 2" else TEXT_ALONE)
    assert found == {"macro over patterns": (1 / 4, 1 / 4, 0, 3)}


def test_mmvp_reads_columns_by_their_places(tmp_path):
    """As the authors' code does, whatever the first line calls them."""
    MAKERS["mmvp-vlm"](tmp_path)
    path, records = tmp_path / mmvp_vlm.FILE, build("mmvp-vlm", tmp_path).records
    first, lines = path.read_text(encoding="utf-8").split("\n", 1)
    path.write_text(f"Index,Pattern,Text\n{lines}", encoding="utf-8")
    assert first == "Question ID,Type,Statement"
    assert build("mmvp-vlm", tmp_path).records == records
    for wrong, problem in ((f"{first},Image", "has 4 columns, not 3"), ("Type,Text", "has 2 columns, not 3")):
        path.write_text(f"{wrong}\n{lines}", encoding="utf-8")
        with pytest.raises(UserError, match=problem):
            build("mmvp-vlm", tmp_path)


def test_pug_spare_exchanges_textures(tmp_path):
    MAKERS["pug-spare"](tmp_path)
    bench = build("pug-spare", tmp_path)
    assert [text.text for text in bench.items[0].texts] == ["Red Bear and Grass Cat", "Grass Bear and Red Cat"]
    rows = {"Desert/0.png": [[2, 1]], "Desert/1.png": [[1, 1]], "Island/0.png": [[1, 2]]}
    assert scored(bench, lambda item: rows[item.record]) == {"all": (1 / 3, 1.5 / 3, 1 / 3, 3)}


def test_photographs_of_other_collections_are_not_taken_for_cocos(tmp_path):
    """VisDial has photographs of its own, Visual7W those of Visual Genome."""
    MAKERS["valse"](tmp_path)
    of = {name: set(load_benchmark("valse").photographs(tmp_path / f"valse/data/{name}.json")) for name in valse.COUNTS}
    assert of["coreference-hard"] == set()
    assert of["foil-it"] == {PhotographId(COCO, 1)}
    assert of["plurals"] == {PhotographId(VISUAL_GENOME, 0), PhotographId(VISUAL_GENOME, 1)}


def spoilt(root, name):
    """A file of a benchmark with a fault that its format allows."""
    if name == "mmvp-vlm":
        rows = [(1, "Text", "a cat"), (2, "Color", "a dog")]
        write_csv(root / mmvp_vlm.FILE, ("Question ID", "Type", "Statement"), rows)
        return "record 1 has no partner of its 'Type'"
    if name == "valse":
        record = {"image_file": "v7w_0.jpg", "caption": "a", "foil": "b", "mturk": {"caption": "3"}}
        write_json(root / "valse/data/plurals.json", {"a": record})
        return r"a\.mturk has a 'caption' that is no int or float"
    if name == "cola":
        write_json(root / "cola/COLA_multiobjects_matching_benchmark.json", [["1.jpg", "a cat", "2.jpg"]])
        return r"\[0\] is no list of 4"
    if name == "pug-spare":
        write_csv(root / "pug_spare/PUG_SPARE.csv", ("filename", "world_name"), [("0.png", "Desert")])
        return "has no column 'character_name'"
    path, key = {
        "bivlc": (root / "bivlc/test.jsonl", "type"),
        "colorswap": (root / "colorswap/test.json", "caption_2"),
        "sugarcrepe-pp": (root / "sugarcrepe_pp/swap_obj.json", "caption2"),
    }[name]
    path.write_text(path.read_text().replace(f'"{key}"', '"other"'))
    return f"has no '{key}'"


@pytest.mark.parametrize("name", NEW)
def test_a_damaged_record_is_refused_by_name(name, tmp_path):
    MAKERS[name](tmp_path)
    problem = spoilt(tmp_path, name)
    with pytest.raises(UserError, match=problem):
        build(name, tmp_path)

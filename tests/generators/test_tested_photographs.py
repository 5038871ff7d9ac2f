"""Photographs that tests show, by their numbers, and what training leaves out because of them."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks import registry, tested_photographs
from menagerie.generators.benchmarks.photographs import image_names
from menagerie.generators.benchmarks.tested_photographs import images_of_tests
from menagerie.generators.sources import registry as sources
from menagerie.generators.sources.kept_out import COCO, FLICKR, VISUAL_GENOME, PhotographId, coco_number, flickr_number
from menagerie.generators.sources.place import Place
from tests.helpers.benchmark_files import (
    IMAGES,
    MAKERS,
    boxed,
    make_coco_val2017,
    make_karpathy_test,
    tiny_tags,
    write_json,
)
from tests.helpers.source_files import make_coco, make_image_data, make_visual_genome

SHARED = Path(os.environ.get("MENAGERIE_SHARED", Path(__file__).parents[3] / "shared"))

OTHERS = [name for name in registry.names() if registry.load_benchmark(name).photographs is not None]


def of_tests(root: Path, **options: object):
    return images_of_tests(Place(root, 16), **options)


def refusal(action, *arguments: object, **options: object) -> str:
    with pytest.raises(UserError) as error:
        action(*arguments, **options)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def write_val2017(root: Path, **image: object) -> None:
    """COCO's validation set, of one image."""
    content = {"images": [image], "annotations": [{"image_id": image["id"], "caption": "a cat"}]}
    write_json(root / "coco/annotations/captions_val2017.json", content)


def test_benchmarks_say_whose_photographs_they_show():
    """A benchmark of photographs of COCO, Visual Genome or Flickr that is added says so, or belongs to these."""
    own = {
        *("bivlc", "vismin"),  # whose photographs are val2017's, which are left out as a whole
        *("clevr-bind", "clevr-bind-prompted", "colorswap", "eqben", "eqben-mini", "imagenet-ao", "mmvp-vlm", "ncd"),
        *("pug-spar", "pug-spare", "spec", "whatsup", "winoground", "zero-shot", "zero-shot-torchvision"),
        *("probe", "probe-torchvision", "pug-spar-places", "pug-spar-scenes"),
    }
    assert set(OTHERS) == set(registry.names()) - own


@pytest.mark.parametrize("name", OTHERS)
def test_all_images_of_a_benchmark_are_known(tmp_path, name):
    MAKERS[name](tmp_path)
    place = Place(tmp_path, 16, tag=tiny_tags)
    bench = registry.load_benchmark(name).build(place)
    found = set(tested_photographs.photographs_of_benchmark(name, Place(tmp_path, 16)))
    numbers = {int(re.search(r"(\d+)(_[0-9a-f]{10})?\.jpg$", file)[1]) for file in image_names(bench.records)}
    assert {number.number for number in found} == numbers
    assert {number.collection for number in found} <= {COCO, VISUAL_GENOME, FLICKR}
    kept = of_tests(tmp_path)
    assert found <= kept.images.keys()
    reasons = {kept.images[number] for number in found}
    assert reasons <= {f"in {name}", "in coco-order", "in flickr-order", "COCO val2017"}


def test_images_of_benchmarks_needn_t_be_there(tmp_path):
    for name in ("sugarcrepe", "retrieval-coco"):
        MAKERS[name](tmp_path)
    whole = of_tests(tmp_path)
    for image in tmp_path.rglob("*.jpg"):
        image.unlink()
    assert of_tests(tmp_path).images == whole.images


def test_photographs_of_a_part_of_a_benchmark_are_left_out(tmp_path):
    MAKERS["sugarcrepe"](tmp_path)
    for path in (tmp_path / "sugarcrepe").glob("add*"):
        path.unlink()
    assert PhotographId(COCO, 2) in of_tests(tmp_path).images


def test_a_damaged_benchmark_is_an_error(tmp_path):
    MAKERS["sugarcrepe"](tmp_path)
    (tmp_path / "sugarcrepe/swap_att.json").write_text("{")
    assert "swap_att.json is no JSON" in refusal(of_tests, tmp_path)
    write_json(
        tmp_path / "sugarcrepe/swap_att.json", {"0": {"filename": "a.jpg", "caption": "a", "negative_caption": "b"}}
    )
    assert "'a.jpg', which isn't called as COCO calls images" in refusal(of_tests, tmp_path)


def test_without_benchmarks_no_photograph_is_left_out(tmp_path):
    kept = of_tests(tmp_path)
    assert not kept.images
    assert "0 of the 5000 of COCO val2017 are known" in kept.unknown[VISUAL_GENOME]
    assert COCO not in kept.unknown


def test_cocos_validation_set_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(tested_photographs, "VALIDATION", 7)
    make_coco_val2017(tmp_path)
    kept = of_tests(tmp_path)
    assert Counter(kept.images.values()) == {"COCO val2017": 7}
    assert kept.unknown == {}


def test_visual_genome_and_coco_by_each_others_numbers(tmp_path, monkeypatch):
    """COCO's image 9 is Visual Genome's image 3, which ARO shows."""
    monkeypatch.setattr(tested_photographs, "VALIDATION", 1)
    make_visual_genome(tmp_path)
    make_coco(tmp_path)
    write_val2017(tmp_path, id=7000, file_name="000000007000.jpg")  # Visual Genome's image 2318
    write_json(tmp_path / "aro/visual_genome_relation.json", [boxed("3.jpg", "a", "b", relation_name="on")])
    kept = of_tests(tmp_path)
    assert Counter(kept.images.values()) == {"COCO val2017": 3, "in vg-relation": 3}
    place = Place(tmp_path, 16, kept_out=kept)
    coco, genome = (sources.load_source(name).open(place) for name in ("coco", "visual genome"))
    assert coco.left_out == {"in vg-relation": 1}
    assert "COCO 9" not in coco.names_of_images
    assert genome.left_out == {"in vg-relation": 1, "COCO val2017": 1, "nothing in region_descriptions.json": 1}
    assert list(genome.names_of_images) == ["Visual Genome 1", "Visual Genome 2317"]
    (tmp_path / "vg/image_data.json").unlink()
    place = Place(tmp_path, 16, kept_out=of_tests(tmp_path))
    assert "photographs in vg-relation are Visual Genome's" in refusal(sources.load_source("coco").open, place)
    allowed = Place(tmp_path, 16, kept_out=of_tests(tmp_path, allow_unknown=True))
    assert len(sources.load_source("coco").open(allowed)) == 4


def test_an_incomplete_validation_set_is_an_error_for_visual_genome(tmp_path):
    make_visual_genome(tmp_path)
    place = Place(tmp_path, 16, kept_out=of_tests(tmp_path))
    text = refusal(sources.load_source("visual genome").open, place)
    assert "0 of the 5000 of COCO val2017" in text
    assert f"{tmp_path}/coco/annotations/captions_val2017.json" in text


def test_numbers_of_visual_genome_and_coco_are_linked(tmp_path, monkeypatch):
    """A test photograph is known by the number that Flickr gives it, too."""
    monkeypatch.setattr(tested_photographs, "VALIDATION", 1)
    make_image_data(tmp_path)
    write_val2017(
        tmp_path, id=9, file_name="000000000009.jpg", flickr_url="http://farm4.staticflickr.com/1/55_0a_z.jpg"
    )
    assert of_tests(tmp_path).images == dict.fromkeys(
        [
            PhotographId(COCO, 9),
            PhotographId(FLICKR, 55),
            PhotographId(VISUAL_GENOME, 3),
            PhotographId(FLICKR, 10**9 + 3),
        ],
        "COCO val2017",
    )


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no {SHARED}: set MENAGERIE_SHARED to the folder of shared data")
def test_real_files_of_sugarcrepe_name_their_photographs():
    place = Place(SHARED / "data", 16, folders={"coco": (SHARED / "data/coco-mini",)})
    kept = images_of_tests(place)
    assert sum(n.collection == COCO and why == "COCO val2017" for n, why in kept.images.items()) == 25
    assert sum(number.collection == COCO for number in kept.images) >= 1560
    data = sources.load_source("coco").open(Place(place.root, 16, folders=place.folders, kept_out=kept))
    assert data.left_out == {}


@pytest.mark.parametrize(
    ("file", "number"),
    [
        ("000000000042.jpg", 42),
        ("COCO_val2014_000000000042.jpg", 42),
        ("val2017/000000391895.jpeg", 391895),
        ("42.jpg", None),
        ("1000000000042.jpg", None),
        ("000000000042.jpg.txt", None),
    ],
)
def test_photographs_of_coco_are_known_by_their_file_names(file, number):
    assert coco_number(file) == (None if number is None else PhotographId(COCO, number))


@pytest.mark.parametrize(
    ("address", "number"),
    [
        ("http://farm4.staticflickr.com/3153/2970773875_164f0c0b83_z.jpg", 2970773875),
        ("https://live.staticflickr.com/65535/49_0a_b.jpg?zz=1", 49),
        ("http://c1.staticflickr.com/8/7020/6810252887_01e3d8e4e6.jpg", 6810252887),
        ("https://example.org/3153/2970773875_164f0c0b83_z.jpg", None),
        (None, None),
        (7, None),
    ],
)
def test_photographs_of_flickr_are_known_by_their_addresses(address, number):
    assert flickr_number(address) == (None if number is None else PhotographId(FLICKR, number))


@pytest.mark.parametrize(
    ("file", "folder", "collection"),
    [
        ("coco/coco_karpathy_test.json", "val2014", COCO),
        ("flickr30k/flickr30k_test.json", "flickr30k-images", FLICKR),
    ],
)
def test_the_other_form_of_karpathys_split(tmp_path, file, folder, collection):
    (tmp_path / file).parent.mkdir()
    make_karpathy_test(tmp_path / file, folder)
    assert {number for number in of_tests(tmp_path).images} == {PhotographId(collection, k) for k in range(IMAGES)}

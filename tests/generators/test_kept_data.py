"""Data as people keep it: folders given below a place, pictures that EXIF turns, palettes, sets as they were unpacked;
and records that say where their truth stands."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.benchmark import first_of_best, texts_chosen
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.place import Place
from menagerie.studies.transfer import Transfer
from tests.helpers.benchmark_files import MAKERS, write_images

SIDE = 32
NOISE = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)


def placed(root, *given):
    """The place of a command line."""
    return Place(root, SIDE, folders=Transfer(images=tuple(given), data_root=root).place.folders)


def built(root, texts=("yes", "no"), images=("a.png",), kind=ItemBenchmark, truth=0, **options):
    """A benchmark of one record."""
    record = Record("1", "", tuple(map(Photograph, images)), tuple(texts), truth=truth)
    return kind("mine", ".", [record], Place(root, SIDE), **options)


# Folders below a place (25)


def test_a_folder_below_a_place_may_lie_elsewhere(tmp_path):
    MAKERS["vl-checklist"](tmp_path)
    content = list(load_benchmark("vl-checklist").build(Place(tmp_path, SIDE)).content())
    (tmp_path / "vl_checklist/images/vg").rename(tmp_path / "genome")
    (tmp_path / "vl_checklist/images/hake").rename(tmp_path / "poses")
    given = [f"vl_checklist/images/vg={tmp_path / 'genome'}", f"vl_checklist/images/hake/={tmp_path / 'poses'}"]
    assert list(load_benchmark("vl-checklist").build(placed(tmp_path, *given)).content()) == content
    for name in ("vl_checklist/images/../x", "vl_checklist/imagesvg", "mine"):
        with pytest.raises(UserError, match="give FOLDER=PATH"):
            placed(tmp_path, f"{name}={tmp_path}")


def test_a_set_of_zero_shot_may_lie_elsewhere(tmp_path):
    write_images(tmp_path / "photos", ["cat/1.jpg", "dog/2.jpg"])
    write_images(tmp_path / "zero_shot/other", ["cow/1.jpg", "pig/2.jpg"])
    (tmp_path / "zero_shot/linked").symlink_to(tmp_path / "photos")
    bench = load_benchmark("zero-shot").build(placed(tmp_path, f"zero_shot/mine={tmp_path / 'photos'}"))
    assert sorted((pool.name, len(pool.images)) for pool in bench.pools) == [("linked", 2), ("mine", 2), ("other", 2)]
    assert torch.equal(*(bench.images(pool.images) for pool in bench.pools if pool.name != "other"))
    with pytest.raises(UserError, match="give a whole set, --images zero_shot/mine=FOLDER"):
        load_benchmark("zero-shot").build(placed(tmp_path, f"zero_shot/mine/cat={tmp_path / 'photos/cat'}"))
    with pytest.raises(UserError, match="give all of it, --images ncd/images=FOLDER"):
        load_benchmark("ncd").build(placed(tmp_path, f"ncd/images/part={tmp_path / 'photos'}"))


# Pictures (26, 27)


def official(path, converted: bool) -> np.ndarray:
    """What open_clip's transform makes of a picture as official code opens it, in values of 0 to 255."""
    open_clip = pytest.importorskip("open_clip")
    picture = Image.open(path)
    transform = open_clip.image_transform(SIDE, is_train=False, mean=(0, 0, 0), std=(1, 1, 1))
    return (transform(picture.convert("RGB") if converted else picture) * 255).round().numpy().astype(np.uint8)


def test_benchmarks_show_pictures_as_they_lie_and_count_those_that_exif_turns(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(NOISE).save(tmp_path / "a.png", exif=turned)
    Image.fromarray(NOISE).save(tmp_path / "b.png")
    bench = built(tmp_path, images=("a.png", "b.png"))
    assert bench.files.turned == set()
    assert np.array_equal(bench.images([0])[0], official(tmp_path / "a.png", True))
    assert torch.equal(*bench.images([0, 1]))
    assert np.array_equal(bench.picture(0), NOISE)  # what a judge is shown
    assert bench.reframe(SIDE, False, "bicubic").files.turned == bench.files.turned == {"a.png"}
    (upright,) = ImageFiles(tmp_path, ["a.png"], SIDE).read([0])  # what training sources show
    assert not torch.equal(upright, bench.images([0])[0])


@pytest.mark.parametrize(("name", "as_stored"), [("sugarcrepe", True), ("whatsup", False)])
@pytest.mark.parametrize("mode", ["P", "RGBA", "L", "RGB"])
def test_palettes_are_scaled_where_official_code_scales_them(name, as_stored, mode, tmp_path):
    """SugarCrepe's code gives the transform what Pillow opened; What'sUp's makes it RGB before."""
    MAKERS[name](tmp_path)
    kind = type(load_benchmark(name).build(Place(tmp_path, SIDE)))
    Image.fromarray(np.dstack([NOISE, NOISE[..., :1]])).convert("RGB" if mode == "P" else mode).convert(mode).save(
        tmp_path / "a.png"
    )
    made = built(tmp_path, kind=kind).images([0])[0].numpy()
    assert np.array_equal(made, official(tmp_path / "a.png", converted=not as_stored))
    other = official(tmp_path / "a.png", converted=as_stored)
    assert (mode in ("P", "RGBA")) == (np.abs(made.astype(int) - other).max() > 30)


# Where the truth stands (28)


@pytest.mark.parametrize("rule", [texts_chosen, first_of_best])
@pytest.mark.parametrize("truth", range(4))
@pytest.mark.parametrize("shape", ["texts", "images"])
def test_ties_count_as_in_the_files_order(rule, truth, shape, tmp_path):
    """Against the official code: a strict comparison, or the argmax over the options as the file lists them."""
    write_images(tmp_path, [f"{k}.png" for k in range(4)])
    files, words = [f"{k}.png" for k in range(4)], [f"text {k}" for k in range(4)]
    texts, images = (words, files[:1]) if shape == "texts" else (words[:1], files)
    bench = built(tmp_path, texts, images, truth=truth, rules=rule)
    (item,) = bench.items
    options = item.texts if shape == "texts" else item.images
    whole = words if shape == "texts" else [bench.numbers[Photograph(file)] for file in files]
    order = [[getattr(option, "text", option) for option in options].index(option) for option in whole]
    drawn = [np.zeros(4), *np.random.default_rng(truth).integers(0, 3, (60, 4)).astype(float)]
    for in_file in drawn:
        scores = np.empty(4)
        scores[order] = in_file
        outcome = bench.outcome(item, scores[None] if shape == "texts" else scores[:, None])
        best = in_file == in_file.max()
        right = in_file.argmax() == truth if rule is first_of_best else best[truth] and best.sum() == 1
        assert outcome == (float(right), best[truth] / best.sum(), bool(best[truth] and best.sum() > 1))


@pytest.mark.parametrize(
    ("texts", "images", "truth"), [(3, 1, 3), (1, 2, 2), (2, 3, 0), (2, 2, 1), (0, 1, 0), (2, 0, 0), (2, 1, -1)]
)
def test_a_record_without_its_truth_is_refused(texts, images, truth, tmp_path):
    write_images(tmp_path, ["0.png", "1.png", "2.png"])
    with pytest.raises(UserError, match=f"has {images} images, {texts} texts and truth {truth}"):
        built(tmp_path, [f"text {k}" for k in range(texts)], [f"{k}.png" for k in range(images)], truth=truth)


# Sets as they were unpacked (30)


def test_a_part_of_imagenet_takes_its_templates_and_names(tmp_path):
    for name in ("imagenet100", "ImageNet-100-val", "mine"):
        write_images(tmp_path / "zero_shot" / name, ["n01440764/1.jpg", "n01443537/2.jpg"])
    (tmp_path / "zero_shot/imagenet100/classes.txt").write_text("n01440764\ttench\nn01443537\tgoldfish\n")
    write_images(tmp_path / "zero_shot/plain", ["tench/1.jpg", "goldfish/2.jpg"])
    pools = {pool.name: pool for pool in load_benchmark("zero-shot").build(Place(tmp_path, SIDE)).pools}
    assert {name: [len(texts) for texts in pool.texts] for name, pool in pools.items()} == {
        "imagenet100": [80, 80],
        "ImageNet-100-val": [80, 80],
        "mine": [80, 80],
        "plain": [1, 1],
    }
    assert pools["mine"].texts == pools["imagenet100"].texts
    assert pools["mine"].texts[1][0].text == "a bad photo of a goldfish."


def test_objectnet_is_read_as_it_was_unpacked(tmp_path):
    folders = ["air_freshener", "chair"]  # of 313, as its test leaves the first out
    write_images(tmp_path / "zero_shot/objectnet-1.0/images", [f"{folder}/1.png" for folder in folders])
    with pytest.raises(UserError, match=r"objectnet-1\.0/images has 1 folders of classes"):
        load_benchmark("zero-shot").build(Place(tmp_path, SIDE))
    (tmp_path / "zero_shot/objectnet-1.0/mappings").mkdir()
    (tmp_path / "zero_shot/objectnet-1.0/images/classes.txt").write_text("air_freshener\tscent\nchair\tchair\n")
    bench = load_benchmark("zero-shot").build(Place(tmp_path, SIDE))
    assert [len(texts) for texts in bench.pools[0].texts] == [80, 80]
    assert {record.images[0].file for record in bench.records} == {
        f"objectnet-1.0/images/{folder}/1.png" for folder in folders
    }
    assert bench.images([0, 1]).shape == (2, 3, SIDE, SIDE)


def test_a_picture_is_what_was_saved():
    """The modes of these tests survive in a PNG."""
    out = io.BytesIO()
    Image.fromarray(NOISE).convert("P").save(out, "PNG")
    assert Image.open(out).mode == "P"

"""Images that lie in several folders, and images and files that lie elsewhere than they should."""

import pickle
import shutil
from dataclasses import replace

import pytest
import torch

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.photographs import Place, images_of
from menagerie.generators.benchmarks.registry import load
from menagerie.generators.sources.nearby import nearby
from menagerie.studies.real_data import RealTraining
from menagerie.studies.scoring.check import state_of
from menagerie.studies.transfer import Transfer
from tests.helpers.benchmark_files import MAKERS, MATRICES, tiny_tags

MAKE = MAKERS | MATRICES
# No file says which images there should be; or a file that isn't there is a set.
LISTED = ("imagenet-ao", "ncd", "zero-shot", "zero-shot-torchvision")


def placed(root, *given):
    """The place of a command line."""
    folders = Transfer(images=tuple(given), data_root=root).folders
    return Place(root, 16, folders=folders, tag=tiny_tags)


def parted(images, root):
    """Every second image of a folder in one other folder, the rest in a second; the folder is gone."""
    parts = [root / "one", root / "other"]
    for k, path in enumerate(sorted(path for path in images.rglob("*") if path.is_file())):
        target = parts[k % 2] / path.relative_to(images)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    shutil.rmtree(images)
    return parts


@pytest.mark.parametrize(
    ("name", "folder"),
    [("negbench", "negbench/images"), ("vg-relation", "aro/images"), ("retrieval-coco", "coco/val2014")],
)
def test_all_folders_of_a_place_are_searched(name, folder, tmp_path):
    """Results are those of one folder, to the last byte of what names them."""
    MAKE[name](tmp_path)
    whole = load(name).build(Place(tmp_path, 16))
    content, prints = list(whole.content()), [whole.fingerprint(k) for k in range(len(whole.numbers))]
    pixels = pickle.loads(pickle.dumps(whole.files)).read(range(len(prints)))
    one, other = parted(tmp_path / folder, tmp_path)
    bench = load(name).build(placed(tmp_path, f"{folder}={one}", f"{folder}={other}"))
    assert list(bench.content()) == content
    assert [bench.fingerprint(k) for k in range(len(prints))] == prints
    assert torch.equal(pickle.loads(pickle.dumps(bench.files)).read(range(len(prints))), pixels)
    with pytest.raises(UserError, match=f"images are missing in {one}, the first is"):
        load(name).build(placed(tmp_path, f"{folder}={one}"))


def test_a_folder_in_a_benchmarks_folder_may_lie_elsewhere(tmp_path):
    """What'sUp has two, each with a name of its own on the command line."""
    MAKE["whatsup"](tmp_path)
    (tmp_path / "whatsup/controlled_clevr").rename(tmp_path / "clevr")
    place = placed(tmp_path, f"whatsup/controlled_clevr={tmp_path / 'clevr'}")
    assert len(load("whatsup").build(place).records) == 12
    (tmp_path / "clevr/mug_left_of_knife.jpeg").unlink()
    with pytest.raises(UserError, match=f"1 of 12 images are missing in {tmp_path}/clevr, the first is"):
        load("whatsup").build(place)


def test_a_file_that_two_folders_have(tmp_path):
    """It is one where its bytes are the same, not where its size is."""
    MAKE["sugarcrepe"](tmp_path)
    shutil.copytree(tmp_path / "coco/val2017", tmp_path / "copy")
    given = [f"coco/val2017={tmp_path / part}" for part in ("coco/val2017", "copy")]
    assert load("sugarcrepe").build(placed(tmp_path, *given)).records
    copy = tmp_path / "copy/000000000002.jpg"
    for content in (b"another", copy.read_bytes()[:-1] + b"\0"):
        copy.write_bytes(content)
        with pytest.raises(UserError, match=r"'000000000002.jpg' is one file in .*val2017 and another in .*copy"):
            load("sugarcrepe").build(placed(tmp_path, *given))


def test_what_several_folders_are_refused_for(tmp_path):
    """One twice; a folder whose content is listed; a folder that training reads."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    twice = [f"coco/train2017={tmp_path / name}" for name in ("a", "b")]
    with pytest.raises(UserError, match="is given twice"):
        placed(tmp_path, f"aro/images={tmp_path / 'a'}", f"aro/images={tmp_path}/b/../a")
    for name, folder in (("zero-shot", "zero_shot"), ("ncd", "ncd/images"), ("zero-shot-torchvision", "torchvision")):
        with pytest.raises(UserError, match=f"--images {folder} is given 2 times"):
            load(name).build(placed(tmp_path, *(f"{folder}={tmp_path / part}" for part in ("a", "b"))))
    with pytest.raises(UserError, match="coco/train2017 is given 2 times; training reads one folder"):
        _ = RealTraining(images=tuple(twice)).folders


def test_a_link_that_leads_out_of_a_second_folder_is_refused(tmp_path):
    MAKE["sugarcrepe"](tmp_path)
    (tmp_path / "other").mkdir()
    image = tmp_path / "coco/val2017/000000000002.jpg"
    image.rename(tmp_path / "secret.jpg")
    (tmp_path / "other/000000000002.jpg").symlink_to(tmp_path / "secret.jpg")
    given = [f"coco/val2017={tmp_path / part}" for part in ("coco/val2017", "other")]
    with pytest.raises(UserError, match="leads out of the image folder"):
        load("sugarcrepe").build(placed(tmp_path, *given))
    shutil.copy(tmp_path / "secret.jpg", image)
    bench = load("sugarcrepe").build(placed(tmp_path))
    image.unlink()
    image.symlink_to(tmp_path / "secret.jpg")
    with pytest.raises(UserError, match="leads out of the image folder"):
        list(bench.content())


@pytest.mark.parametrize("name", sorted(MAKE.keys() - set(LISTED)))
def test_check_names_folder_and_first_file_of_what_is_missing(name, tmp_path):
    """And where they lie: a folder lower, after all images were put into one."""
    MAKE[name](tmp_path)
    spec, place = load(name), Place(tmp_path, 16, tag=None)
    bench = spec.build(place)
    first = min(map(bench.reader.file_of, images_of(bench.records)))
    folder = (bench.files.root / first).parent
    lower = folder / "lower"
    lower.mkdir()
    for path in [path for path in folder.iterdir() if path.is_file() and path.suffix not in (".csv", ".txt")]:
        path.rename(lower / path.name)
    problem, _ = state_of(spec, replace(place, allow_missing=True))
    assert (
        f"{bench.files.root}, the first is {first!r}; it lies at {lower / (bench.files.root / first).name}" in problem
    )


def test_where_an_image_lies(tmp_path):
    """A folder higher, a folder lower, with another ending, or nowhere near."""
    MAKE["sugarcrepe"](tmp_path)
    spec, place = load("sugarcrepe"), Place(tmp_path, 16, allow_missing=True)
    image = tmp_path / "coco/val2017/000000000001.jpg"
    moved = image
    for other in ("coco/000000000001.jpg", "coco/val2017/images/000000000001.jpg", "coco/val2017/000000000001.JPEG"):
        (tmp_path / other).parent.mkdir(exist_ok=True)
        moved = moved.rename(tmp_path / other)
        problem, records = state_of(spec, place)
        assert problem.startswith(
            f"7 records lack their images: 1 of 2 images are missing in {image.parent}, the first"
        )
        assert f"the first is '000000000001.jpg'; it lies at {moved};" in problem
        assert records == 14
    moved.unlink()
    assert "the first is '000000000001.jpg'; add_att has" in state_of(spec, place)[0]
    with pytest.raises(UserError, match=r"the first is '000000000001\.jpg'; put them there"):
        spec.build(replace(place, allow_missing=False))


@pytest.mark.parametrize(
    ("moved", "to", "lacks"),
    [
        ("sugarcrepe", "data/sugarcrepe", "sugarcrepe/add_att.json and 7 more"),
        ("sugarcrepe/add_att.json", "sugarcrepe/data/add_att.json", "sugarcrepe/add_att.json"),
        ("sugarcrepe/add_att.json", "add_att.json", "sugarcrepe/add_att.json"),
        ("sugarcrepe/add_att.json", "sugarcrepe/add_att.jsonl", "sugarcrepe/add_att.json"),
        ("coco/val2017", "val2017", "coco/val2017"),
        ("coco/val2017", "coco/images/val2017", "coco/val2017"),
    ],
)
def test_where_a_file_or_folder_lies(moved, to, lacks, tmp_path):
    MAKE["sugarcrepe"](tmp_path)
    (tmp_path / to).parent.mkdir(parents=True, exist_ok=True)
    if moved == "sugarcrepe":
        (tmp_path / "coco").rename(tmp_path / "data/coco")
    (tmp_path / moved).rename(tmp_path / to)
    problem, _ = state_of(load("sugarcrepe"), Place(tmp_path, 16, allow_missing=True))
    lacking, _, more = lacks.partition(" ")
    first = tmp_path / (f"{to}/add_att.json" if moved == "sugarcrepe" else to)
    assert problem == f"there is no {tmp_path / lacking}{more and f' {more}'}; it lies at {first}"


def test_one_of_several_files_lies_elsewhere(tmp_path):
    MAKE["colorswap"](tmp_path)
    path = tmp_path / "colorswap/test.json"
    moved = path.rename(tmp_path / "test.json")
    problem, _ = state_of(load("colorswap"), Place(tmp_path, 16, allow_missing=True))
    assert problem.startswith(f"there is none of {path}")
    assert problem.endswith(f"; it lies at {moved}")


def test_what_is_nowhere_near_is_nowhere(tmp_path):
    assert nearby(tmp_path / "a/b", "c/d.jpg") is None

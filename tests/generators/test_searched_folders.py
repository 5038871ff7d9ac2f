"""Images that lie in several folders, and images and files that lie elsewhere than they should."""

import pickle
import shutil

import pytest
import torch

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.sources.place import Place
from menagerie.studies.real_data import RealTraining
from menagerie.studies.transfer import Transfer
from tests.helpers.benchmark_files import MAKERS, tiny_tags


def placed(root, *given):
    """The place of a command line."""
    folders = Transfer(images=tuple(given), data_root=root).place.folders
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
    MAKERS[name](tmp_path)
    whole = load_benchmark(name).build(Place(tmp_path, 16))
    content, numbers = list(whole.content()), range(len(whole.numbers))
    pixels = pickle.loads(pickle.dumps(whole.files)).read(numbers)
    one, other = parted(tmp_path / folder, tmp_path)
    bench = load_benchmark(name).build(placed(tmp_path, f"{folder}={one}", f"{folder}={other}"))
    assert list(bench.content()) == content
    assert torch.equal(pickle.loads(pickle.dumps(bench.files)).read(numbers), pixels)
    with pytest.raises(UserError, match=f"images are missing in {one}, the first is"):
        load_benchmark(name).build(placed(tmp_path, f"{folder}={one}"))


def test_a_folder_in_a_benchmarks_folder_may_lie_elsewhere(tmp_path):
    """What'sUp has two, each with a name of its own on the command line."""
    MAKERS["whatsup"](tmp_path)
    (tmp_path / "whatsup/controlled_clevr").rename(tmp_path / "clevr")
    place = placed(tmp_path, f"whatsup/controlled_clevr={tmp_path / 'clevr'}")
    assert len(load_benchmark("whatsup").build(place).records) == 12
    (tmp_path / "clevr/mug_left_of_knife.jpeg").unlink()
    with pytest.raises(UserError, match=f"1 of 12 images are missing in {tmp_path}/clevr, the first is"):
        load_benchmark("whatsup").build(place)


def test_a_file_that_two_folders_have(tmp_path):
    """It is one where its bytes are the same, not where its size is."""
    MAKERS["sugarcrepe"](tmp_path)
    shutil.copytree(tmp_path / "coco/val2017", tmp_path / "copy")
    given = [f"coco/val2017={tmp_path / part}" for part in ("coco/val2017", "copy")]
    assert load_benchmark("sugarcrepe").build(placed(tmp_path, *given)).records
    copy = tmp_path / "copy/000000000002.jpg"
    for content in (b"another", copy.read_bytes()[:-1] + b"\0"):
        copy.write_bytes(content)
        with pytest.raises(UserError, match=r"'000000000002.jpg' is one file in .*val2017 and another in .*copy"):
            load_benchmark("sugarcrepe").build(placed(tmp_path, *given))


def test_several_folders_are_refused_where_files_are_listed(tmp_path):
    """One twice; a folder whose content is listed; a folder that training reads."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    twice = [f"coco/train2017={tmp_path / name}" for name in ("a", "b")]
    with pytest.raises(UserError, match="is given twice"):
        placed(tmp_path, f"aro/images={tmp_path / 'a'}", f"aro/images={tmp_path}/b/../a")
    for name, folder in (("zero-shot", "zero_shot"), ("ncd", "ncd/images"), ("zero-shot-torchvision", "torchvision")):
        with pytest.raises(UserError, match=f"--images {folder} is given 2 times"):
            load_benchmark(name).build(placed(tmp_path, *(f"{folder}={tmp_path / part}" for part in ("a", "b"))))
    with pytest.raises(UserError, match="coco/train2017 is given 2 times; training reads one folder"):
        _ = RealTraining(images=tuple(twice)).folders

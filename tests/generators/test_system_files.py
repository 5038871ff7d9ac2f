"""What operating systems leave in folders and archives is passed over wherever they are listed."""

import pytest
from PIL import Image

from menagerie.envs.core.reading import is_system_file
from menagerie.envs.custom.photos import background_pictures, own_stamps
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.tar_shards import TarShards
from menagerie.models.library.sources import HuggingFace
from tests.helpers.benchmark_files import make_imagenet_ao, make_zero_shot, write_images
from tests.helpers.source_files import picture, write_shard

FORK = b"\0\5\x16\7"  # how what macOS writes beside a file begins


def leave(folder):
    """What macOS and Windows leave, in a folder and those below it."""
    for path in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
        for file in [file for file in path.iterdir() if file.is_file()]:
            (path / f"._{file.name}").write_bytes(FORK)
        for name in (".DS_Store", "Thumbs.db", "desktop.ini"):
            (path / name).write_bytes(b"\0")
        (path / "__MACOSX").mkdir()
        (path / "__MACOSX/._lion.png").write_bytes(FORK)
        Image.new("RGB", (8, 8)).save(path / "__MACOSX/tiger.png")
    return folder


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        *((name, True) for name in ("._a.jpg", "a/._b", ".DS_Store", "__MACOSX/a.jpg", "./__MACOSX", "Thumbs.db")),
        *((name, False) for name in ("a.jpg", "./a.jpg", ".cache/a", "a._b", "MACOSX", "a/..b", "../a", "")),
    ],
)
def test_system_files_are_recognised_by_name(path, expected):
    assert is_system_file(path) == expected


def test_system_files_among_cutouts_and_backgrounds_are_ignored(tmp_path):
    write_images(tmp_path / "cutouts", ["lion.png", "tiger/1.png"], (8, 8))
    write_images(tmp_path / "scenery", ["beach.png"], (8, 8))
    assert {stamp.relative for stamp in own_stamps(leave(tmp_path / "cutouts"))} == {"lion.png", "tiger/1.png"}
    found = background_pictures(leave(tmp_path / "scenery"))
    assert {name: [path.name for path in paths] for name, paths in found.items()} == {"beach": ["beach.png"]}


@pytest.mark.parametrize(("name", "make"), [("zero-shot", make_zero_shot), ("imagenet-ao", make_imagenet_ao)])
def test_system_files_among_folders_of_classes_are_ignored(name, make, tmp_path):
    make(tmp_path)
    before = [record.name for record in load_benchmark(name).build(Place(tmp_path)).records]
    leave(tmp_path / ("zero_shot" if name == "zero-shot" else "imagenet_ao/images"))
    assert [record.name for record in load_benchmark(name).build(Place(tmp_path)).records] == before


def test_shards(tmp_path):
    own = {"a.jpg": picture("a"), "a.txt": b"a cat"}
    write_shard(tmp_path / "shards/0.tar", {**own, "._a.jpg": FORK, "__MACOSX/._a.jpg": FORK, ".DS_Store": b"\0"})
    leave(tmp_path / "shards")
    data = TarShards(Place(tmp_path, 16))
    assert (list(data.names_of_images), data.left_out) == (["0.tar/a"], {})


def test_a_folder_of_weights_is_the_same_model(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    before = HuggingFace("own", str(tmp_path)).identity()
    assert HuggingFace("own", str(leave(tmp_path))).identity() == before

"""Links that a user has laid below a folder are followed, whatever reads it; names in files that climb are refused
where each reader is tested."""

import pytest
import torch

from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.hub.write import import_folder
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.registry import load_source
from tests.faults.their_files import make_table, make_webdataset
from tests.helpers.benchmark_files import MAKERS, tiny_tags
from tests.helpers.cutout_files import draw, world_of
from tests.helpers.source_files import MAKERS as SOURCES


def laid_elsewhere(folder, files: bool):
    """Move a folder's files away, or the folders that have some, and lay links in their places."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    paths = paths if files else sorted({path.parent for path in paths} - {folder}, reverse=True)
    (folder.parent / "elsewhere").mkdir()
    for number, path in enumerate(paths):
        target = path.rename(folder.parent / "elsewhere" / f"{number}{path.suffix}")
        path.symlink_to(target, target_is_directory=not files)


@pytest.mark.parametrize("files", [True, False])
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_links_below_the_data_root_of_a_benchmark_are_followed(name, files, tmp_path):
    MAKERS[name](tmp_path / "data")
    place = Place(tmp_path / "data", 16, tag=tiny_tags)
    before = list(load_benchmark(name).build(place).content())
    laid_elsewhere(tmp_path / "data", files)
    assert list(load_benchmark(name).build(place).content()) == before


@pytest.mark.parametrize("files", [True, False])
@pytest.mark.parametrize("name", sorted(SOURCES))
def test_links_below_the_data_root_of_a_source_are_followed(name, files, tmp_path):
    SOURCES[name](tmp_path / "data")
    before = load_source(name).open(Place(tmp_path / "data", 16))
    laid_elsewhere(tmp_path / "data", files)
    after = load_source(name).open(Place(tmp_path / "data", 16))
    assert after.identity == before.identity
    assert torch.equal(after.images([0, 1]), before.images([0, 1]))


@pytest.mark.parametrize("files", [True, False])
@pytest.mark.parametrize("make", [lambda f: make_table(f, "parquet"), lambda f: make_webdataset(f, "classnames.txt")])
def test_links_below_a_folder_of_the_hub_are_followed(make, files, tmp_path):
    folder = make(tmp_path).parent
    laid_elsewhere(folder, files)
    assert import_folder(folder, tmp_path / "data").images > 1


def test_links_beside_a_world_are_followed(tmp_path):
    draw(tmp_path / "lion.png")
    (tmp_path / "world").mkdir()
    path = world_of(tmp_path / "world", '[animal.lion]\ncutouts = ["link.png"]\n', '["lion", "rabbit"]')
    (tmp_path / "world/link.png").symlink_to(tmp_path / "lion.png")
    assert "lion" in load_world(path).animals

"""The image store: rendered once, whole or not at all, the same bytes however it was written."""

from dataclasses import replace

import h5py
import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.machine import system_name
from menagerie.envs.render import RENDER_VERSION
from menagerie.envs.render.stage import EntryKey
from menagerie.envs.scene import Scene, Thing
from menagerie.envs.worlds import load_world
from menagerie.generators.storage import image_store as store_module
from menagerie.generators.storage.image_store import ImageStore
from menagerie.generators.storage.needed import needed
from tests.disks import mounted, read_only, with_largest_file
from tests.helpers.judge import outcome

WORLD = load_world("tiny")
SCENES = list(WORLD.singles())[:12]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(store_module, "SHARD_ROWS", 5)


def pixels(store: ImageStore, scenes=SCENES) -> np.ndarray:
    shards, _ = store.index()
    images = np.concatenate([h5py.File(store.folder / shard.file)["images"][:] for shard in shards])
    return images[store.rows(scenes)]


def test_a_shard_reads_with_plain_h5py(tmp_path):
    store = ImageStore(tmp_path, WORLD, 32)
    store.add(SCENES)
    with h5py.File(store.folder / "shard-00000.h5") as file:
        assert file["images"].shape == (5, 32, 32, 3)
        assert file["masks"].shape == (5, 32, 32)
        assert file["images"].fletcher32
        assert set(np.unique(file["masks"])) == {0, 1}
        assert file["scenes"].shape == (5,)


def test_a_scene_is_rendered_once(tmp_path):
    store = ImageStore(tmp_path, WORLD, 32)
    store.add(SCENES[:6])
    before = {path: path.stat().st_mtime_ns for path in store.folder.glob("shard*")}
    rows = store.rows(SCENES[:6])
    assert store.missing(SCENES) == sorted(SCENES[6:])
    store.add(SCENES)
    assert (store.rows(SCENES[:6]) == rows).all()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert store.missing(SCENES) == []


def test_same_bytes_from_one_and_two_workers_and_in_any_order(tmp_path):
    one, two = ImageStore(tmp_path / "1", WORLD, 32), ImageStore(tmp_path / "2", WORLD, 32)
    one.add(SCENES, workers=1)
    two.add(SCENES[::-1], workers=2)
    assert (pixels(one) == pixels(two)).all()
    for name in ("index.h5", "shard-00000.h5", "shard-00002.h5"):
        assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes()


def test_stopped_after_a_shard_it_goes_on(tmp_path, monkeypatch):
    store, whole = ImageStore(tmp_path / "a", WORLD, 32), ImageStore(tmp_path / "b", WORLD, 32)
    whole.add(SCENES)
    real, calls = store_module.write_shard, []

    def stop_at_third(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        real(*args)

    monkeypatch.setattr(store_module, "write_shard", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        store.add(SCENES)
    assert len(store.missing(SCENES)) == 2
    monkeypatch.setattr(store_module, "write_shard", real)
    store.add(SCENES)
    assert (pixels(store) == pixels(whole)).all()


def test_leftovers_of_a_killed_writer_are_cleared(tmp_path):
    store = ImageStore(tmp_path, WORLD, 32)
    store.folder.mkdir(parents=True)
    (store.folder / f".shard-00000.{system_name()}-{2**30}.tmp.h5").write_text("half a shard")
    (store.folder / "shard-00000.h5").write_text("written, but the writer died before the index")
    store.add(SCENES)
    assert not list(store.folder.glob(".*tmp*"))
    assert pixels(store).any()


def test_a_truncated_shard_is_named_and_only_it_is_rendered_again(tmp_path):
    store = ImageStore(tmp_path, WORLD, 32)
    store.add(SCENES)
    before = pixels(store)
    shard = store.folder / "shard-00001.h5"
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(UserError, match=r"shard-00001\.h5 is damaged .*truncated.* delete it and run again"):
        store.add(SCENES)
    shard.unlink()
    store.add(SCENES)
    assert (pixels(store) == before).all()


@pytest.mark.parametrize("size", [0, 1_100_000])
def test_a_limit_on_files_is_one_line_and_loses_nothing(size, tmp_path, monkeypatch):
    """HDF5 itself crashes where it can't write."""
    store = ImageStore(tmp_path, WORLD, 128)
    monkeypatch.setattr(store_module, "SHARD_ROWS", 1)
    store.add(SCENES[:1])
    monkeypatch.setattr(store_module, "SHARD_ROWS", 5)
    store.renderer(1).prepare(SCENES[:6])
    before = {path.name: path.read_bytes() for path in store.folder.glob("*.h5")}
    what, said = with_largest_file(size, lambda: store.add(SCENES[:6]), tmp_path)
    assert what == "error", said
    assert "shard-00001.h5 can't be written (File too large" in said
    assert len(said.splitlines()) == 1
    assert {path.name: path.read_bytes() for path in store.folder.rglob("*") if path.name != ".lock"} == before


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path):
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=900k", "tmpfs"):
        store = ImageStore(tmp_path / "disk", WORLD, 16)
        what, said = outcome(lambda path: store.add(SCENES), tmp_path)
        assert what == "error", said
        assert "shard-00000.h5 can't be written (No space left on device" in said
        assert not list(store.folder.glob("*.h5"))
        assert not list(store.folder.glob(".*tmp*"))


def test_a_complete_store_on_a_read_only_disk_is_read(tmp_path):
    store = ImageStore(tmp_path, WORLD, 16)
    store.add(SCENES)
    (store.folder / ".lock").unlink()
    with read_only(tmp_path):
        store.add(SCENES)
        with pytest.raises(UserError, match=r"lacks \d+ scenes or shards and can't be written to"):
            store.add(list(WORLD.singles())[:13])


def test_a_shard_under_another_ones_name_is_named(tmp_path):
    store = ImageStore(tmp_path, WORLD, 16)
    store.add(SCENES)
    before = pixels(store)
    first, second = (store.folder / f"shard-{k:05d}.h5" for k in range(2))
    second.write_bytes(first.read_bytes())
    with pytest.raises(UserError, match=r"shard-00001\.h5 is another shard under this one's name; delete it"):
        store.add(SCENES)
    second.unlink()
    store.add(SCENES)
    assert (pixels(store) == before).all()


def test_the_index_of_another_store_is_named(tmp_path):
    """It has the same scenes in the same rows."""
    one, other = (ImageStore(tmp_path, WORLD, side) for side in (16, 17))
    one.add(SCENES)
    other.add(SCENES)
    (other.folder / "index.h5").write_bytes((one.folder / "index.h5").read_bytes())
    with pytest.raises(UserError, match=r"index\.h5 belongs to store .* keep each store in its own folder"):
        other.index()


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_codecs_keep_the_pixels(tmp_path, codec):
    plain, packed = ImageStore(tmp_path / "a", WORLD, 32), ImageStore(tmp_path / "b", WORLD, 32)
    plain.add(SCENES)
    packed.add(SCENES, codec=codec)
    assert (pixels(plain) == pixels(packed)).all()
    shard = packed.folder / "shard-00001.h5"
    shard.unlink()
    packed.add(SCENES)  # restored as it was, though no codec is given now
    assert packed.index()[0][1].codec == codec
    assert (pixels(plain) == pixels(packed)).all()


def test_unknown_names_are_reported(tmp_path):
    store = ImageStore(tmp_path, WORLD, 32)
    with pytest.raises(UserError, match="unknown codec 'zip'; known: none, lz4, zstd"):
        store.add(SCENES, codec="zip")
    with pytest.raises(UserError, match="did you mean 'elephant'"):
        store.add([Scene("desert", (Thing("elefant", "red", "center"),))])
    with pytest.raises(UserError, match="not in the store"):
        store.rows(SCENES)


def test_identity_names_world_resolution_and_renderer(tmp_path, monkeypatch):
    first = ImageStore(tmp_path, WORLD, 32).identity
    assert ImageStore(tmp_path, WORLD, 64).identity != first
    assert ImageStore(tmp_path, load_world("pug"), 32).identity != first
    monkeypatch.setattr("menagerie.envs.render.RENDER_VERSION", RENDER_VERSION + 1)
    assert ImageStore(tmp_path, WORLD, 32).identity != first


def test_resolution_is_checked_before_a_folder_is_made(tmp_path):
    with pytest.raises(UserError, match="resolution must be at least 16, got 0"):
        ImageStore(tmp_path, WORLD, 0)
    assert not list(tmp_path.iterdir())


def test_what_is_needed_is_counted_and_nothing_is_made(tmp_path):
    store, scenes = ImageStore(tmp_path, WORLD, 32), [replace(scene, view=view) for scene in SCENES for view in (0, 3)]
    entries = len({EntryKey.of(thing, scene.view) for scene in scenes for thing in scene.things})
    counts = f"{len(scenes)} scenes, {{0}} of them to render; {entries} atlas entries, {{1}} of them to build; about "
    before = needed(store, scenes)
    assert before.startswith(counts.format(len(scenes), entries))
    assert not list(tmp_path.iterdir())
    store.add(scenes)
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.*") if path.is_file()) / 1e6
    assert size / 2 < float(before.split()[-2]) < 2 * size
    assert needed(store, scenes) == counts.format(0, 0) + "0.0 MB"

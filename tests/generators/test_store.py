"""The image store: rendered once, whole or not at all, the same bytes however it was written."""

import h5py
import numpy as np
import pytest

from envs.common.errors import UserError
from envs.scene import Scene, Thing
from envs.worlds import load_world
from generators.storage import image_store as store_module
from generators.storage.image_store import ImageStore

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
    (store.folder / ".shard-00000.1.tmp.h5").write_text("half a shard")
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
    monkeypatch.setattr("envs.render.identity.DRAWS", ("shapes",))  # as if other sources decided pixels
    assert ImageStore(tmp_path, WORLD, 32).identity != first


def test_resolution_is_checked_before_a_folder_is_made(tmp_path):
    with pytest.raises(UserError, match="resolution must be from 16 to 1024 pixels, got 0"):
        ImageStore(tmp_path, WORLD, 0)
    assert not list(tmp_path.iterdir())

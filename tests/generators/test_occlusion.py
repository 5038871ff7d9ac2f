"""What a store keeps of things that hide others, and that files without crowds stay as they were."""

import h5py
import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.render.occlusion import area_table, hidden_shares
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import PAIR_SLOTS
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.vocabulary import Vocabulary

WORLD = load_world("tiny")
PAIR = Scene("city", (Thing("rabbit", "red", "left"), Thing("penguin", "white", "right")))


def behind(view: int) -> Scene:
    """An elephant before a rabbit, and a crocodile beside them."""
    places = {"elephant": "front left", "rabbit": "near left", "crocodile": "front right"}
    return Scene("city", tuple(Thing(animal, "red", place) for animal, place in places.items()), view)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SplitFolder:
    store = SplitFolder(tmp_path_factory.mktemp("store"), WORLD, 32)
    store.add([PAIR])
    store.add([behind(0), behind(1)])
    return store


def test_shares_of_masks_by_hand():
    masks = np.zeros((2, 4, 4), np.uint8)
    masks[0, :2], masks[0, 3, 0] = 1, 2
    shares = hidden_shares(area_table([(8, 4), (6,)]), masks)
    assert shares.shape == (2, 8)
    assert shares[0, :2].tolist() == [0, 0.75]
    assert shares[1, 0] == 1, "nothing of it shows"
    assert np.isnan(shares[0, 2:]).all()
    more = hidden_shares(area_table([(5, 1), (6,)]), masks)
    assert more[0].tolist()[:2] == [0, 0], "an edge may give a thing more pixels than it has alone"


def test_a_store_keeps_how_much_each_thing_covers_alone(store):
    shares = store.hidden(store.rows([behind(1), PAIR, behind(0)]))
    assert np.isnan(shares[1]).all(), "nothing is kept of pairs"
    renderer = Renderer(WORLD, 32)
    for scene, found in zip((behind(1), behind(0)), shares[[0, 2]], strict=True):
        names = [thing.animal for thing in scene.things]
        (mask,) = renderer.render([scene]).masks
        for k, thing in enumerate(scene.things):
            alone = renderer.render([Scene("city", (thing,), scene.view)]).masks.sum()
            assert found[k] == pytest.approx(max(0, 1 - (mask == k + 1).sum() / alone), abs=0.06)
        assert found[names.index("rabbit")] > 0.1
        assert found[names.index("crocodile")] == 0


def test_shards_of_pairs_have_neither_areas_nor_places_of_crowds(store):
    with h5py.File(store.folder / "shard-00000.h5") as pairs, h5py.File(store.folder / "shard-00001.h5") as crowds:
        assert "areas" not in pairs
        assert Vocabulary.from_json(pairs.attrs["vocabulary"].decode()).slots == PAIR_SLOTS
        assert crowds["areas"].dtype == np.int32
        assert (crowds["areas"][:, :3] > 10).all()
        assert (crowds["areas"][:, 3:] == -1).all()
        assert "near left" in Vocabulary.from_json(crowds.attrs["vocabulary"].decode()).slots


def test_a_lost_shard_comes_back_with_its_areas(store):
    shard = store.folder / "shard-00001.h5"
    before = shard.read_bytes()
    shard.unlink()
    store.add([PAIR])
    assert shard.read_bytes() == before


def test_a_changed_area_is_found(store):
    shard = store.folder / "shard-00001.h5"
    before = shard.read_bytes()
    with h5py.File(shard, "r+") as file:
        file["areas"][0, 0] += 1
    with pytest.raises(UserError, match="changed since it was written"):
        store.add([PAIR])
    with h5py.File(shard, "r+") as file:
        del file["areas"]
    with pytest.raises(UserError, match="delete it and run again"):
        store.add([PAIR])
    shard.write_bytes(before)

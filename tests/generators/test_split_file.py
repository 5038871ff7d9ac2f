"""Split files and the data set over them."""

import fcntl
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from menagerie import SplitDataset
from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.run import check_file
from menagerie.generators.captioned import collate
from menagerie.generators.captions.hard_negatives.swaps import swap_textures
from menagerie.generators.storage import split_file
from menagerie.generators.storage.image_store import ImageStore
from menagerie.generators.storage.split_file import read_split
from menagerie.studies.runs.data import SplitData
from tests.helpers.splits import RECIPE, make_split


def test_holds_the_scenes_of_its_recipe(split):
    subsets = read_split(split).subsets
    assert set(subsets) == {"train", "validation", *RECIPE.tests}
    for name, scenes in RECIPE.subsets().items():
        assert subsets[name].scenes == scenes


def test_opens_in_three_lines(split):
    data = SplitDataset(split, "train")
    example = data[len(data) - 1]
    assert example.image.shape == (3, 16, 16)
    assert example.image.dtype == torch.uint8
    assert example.caption != example.negative
    assert example.graph.nodes != example.negative_graph.nodes


def test_a_partner_shows_what_the_negative_states(split):
    data = SplitDataset(split, "seen_pairs")
    shown = np.concatenate([h5py.File(split.parent / shard.file)["scenes"][:] for shard in data.split.shards])
    partners = data.split.vocabulary.decode(shown[data.records.partners])
    assert partners == [swap_textures(scene) for scene in data.records.scenes]
    assert not torch.equal(data.partner_images([0]), data.images([0]))
    assert (SplitDataset(split, "train").records.partners == -1).all()


def test_pixels_and_masks_show_the_scene(split):
    """The thing on the left is to the left in the mask."""
    data = SplitDataset(split, "unseen_pairs")
    masks = data.masks(range(len(data))).numpy()
    for mask in masks:
        assert set(np.unique(mask)) == {0, 1, 2}
        left, right = (np.nonzero(mask == i)[1].mean() for i in (1, 2))
        assert left < right


def test_lazy_equals_preloaded(split):
    lazy, loaded = (SplitDataset(split, "validation", preload=preload) for preload in (False, True))
    assert torch.equal(lazy.images(range(len(lazy))), loaded.images(range(len(loaded))))


@pytest.mark.parametrize("workers", [0, 2])
def test_data_loader(split, workers):
    data = SplitDataset(split, "train", preload=False)
    batches = list(DataLoader(data, batch_size=16, num_workers=workers))
    named = list(DataLoader(data, batch_size=16, collate_fn=collate))
    assert [batch[1:] for batch in batches] == [batch[1:] for batch in named]
    assert [graph for batch in batches for graph in batch.graph] == data.records.graphs
    assert [graph for batch in batches for graph in batch.negative_graph] == data.records.negative_graphs
    images = torch.cat([batch.image for batch in batches])
    assert torch.equal(images, data.images(range(len(data))))
    assert [c for batch in batches for c in batch.caption] == data.records.captions


def test_graphs_in_batches_of_ones_own_stay_whole(split):
    """Torch would transpose their tuples, or fail where two graphs differ in size."""
    data = SplitDataset(split, "train", preload=False)
    graphs = [{"graph": data[i].graph} for i in range(len(data))]
    (batch,) = DataLoader(graphs, batch_size=len(data))
    assert batch["graph"] == data.records.graphs
    assert len({len(graph.nodes) for graph in batch["graph"]}) > 1


def test_travels_to_spawned_workers(split):
    data = SplitDataset(split, "validation", preload=False)
    _ = data[0]
    assert torch.equal(pickle.loads(pickle.dumps(data))[0].image, data[0].image)


def test_pixels_are_shared_with_spawned_workers_and_not_sent(split):
    data = SplitDataset(split, "train", preload=True)
    lazy = SplitDataset(split, "train", preload=False)
    assert len(pickle.dumps(data)) < len(pickle.dumps(lazy)) + 1000
    (images,) = DataLoader([data], 1, num_workers=1, collate_fn=read_in_worker, multiprocessing_context="spawn")
    assert torch.equal(images, lazy.images(range(len(lazy))))
    arrived = pickle.loads(pickle.dumps(data))
    data._pixels.array[:] = 7
    assert (arrived.images([0]) == 7).all()  # the very same memory


def read_in_worker(items):
    """In a worker: the images of a data set, which has its pixels from the sender's memory."""
    (data,) = items
    assert data._pixels.array is not None
    assert not data._pixels.array.flags.writeable
    return data.images(range(len(data)))


def test_where_the_sender_is_gone_the_shards_are_read(split):
    data = SplitDataset(split, "validation", preload=True)
    sent, expected = pickle.dumps(data), data.images(range(len(data)))
    handles = len(os.listdir("/proc/self/fd"))
    del data
    assert len(os.listdir("/proc/self/fd")) < handles
    arrived = pickle.loads(sent)
    assert arrived._pixels.array is None
    assert torch.equal(arrived.images(range(len(arrived))), expected)


def test_plain_h5py_follows_the_links(split):
    with h5py.File(split) as file:
        row = file["subsets/validation/scene"][0]
        assert file["shards/0/images"][row].shape == (16, 16, 3)
        assert file["subsets/validation/caption"].asstr()[0].startswith("a")


def test_same_recipe_same_bytes(split, tmp_path):
    assert make_split(tmp_path).read_bytes() == split.read_bytes()


def test_unknown_subset_names_the_nearest(split):
    with pytest.raises(UserError, match="did you mean 'unseen_pairs'"):
        SplitDataset(split, "unseen_pair")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no file .*nowhere\.h5"):
        SplitDataset(tmp_path / "nowhere.h5")


@pytest.mark.parametrize("keep", [0, 100, 5000])
def test_truncated_split_is_named(copied, keep):
    copied.write_bytes(copied.read_bytes()[:keep])
    with pytest.raises(UserError, match=rf"{copied.name} is damaged.*make it again"):
        SplitDataset(copied)


def test_truncated_shard_is_named(copied):
    shard = copied.parent / "shard-00000.h5"
    shard.write_bytes(shard.read_bytes()[:-10])
    with pytest.raises(UserError, match=r"shard-00000\.h5 is damaged .*delete it"):
        SplitDataset(copied)


def test_flipped_byte_in_a_shard_is_noticed(copied):
    """HDF5's checksum of the image."""
    shard = copied.parent / "shard-00000.h5"
    with h5py.File(shard) as file:
        offset = file["images"].id.get_chunk_info(0).byte_offset
    content = bytearray(shard.read_bytes())
    content[offset + 7] ^= 0xFF
    shard.write_bytes(content)
    data = SplitDataset(copied, "train", preload=False)
    with pytest.raises(UserError, match=r"shard-00000\.h5 is damaged at row 0"):
        data.reader.read(0)


def test_a_split_of_another_store_is_refused(copied, tmp_path):
    other = make_split(tmp_path / "other", resolution=32)
    stranger = other.parent / copied.name
    stranger.write_bytes(copied.read_bytes())
    with pytest.raises(UserError, match=r"belongs to store .* keep each store in its own folder"):
        SplitDataset(stranger)


def test_a_split_never_leaves_its_folder(copied):
    with h5py.File(copied, "r+") as file:
        table = file["shard_table"][:]
        table["file"][0] = b"../shard-00000.h5"
        file["shard_table"][:] = table
    with pytest.raises(UserError, match="outside its own folder"):
        SplitDataset(copied)


@pytest.mark.parametrize("link", [h5py.ExternalLink("../secret.h5", "/"), h5py.SoftLink("/shards/0")])
def test_links_of_a_stranger_are_not_followed(copied, link):
    with h5py.File(copied.parent.parent / "secret.h5", "w") as file:
        file["caption"] = "secret"
    with h5py.File(copied, "r+") as file:
        file["subsets/extra"] = link
    with pytest.raises(UserError, match="outside its own folder"):
        SplitDataset(copied)


def test_a_store_in_another_order_is_noticed_and_mended(copied):
    """The same scenes rendered in two goes lie in other rows."""
    data = SplitDataset(copied, "validation")
    store = ImageStore(copied.parent.parent, load_world("tiny"), 16)
    assert store.folder == copied.parent
    scenes = RECIPE.scenes_to_render()
    for path in store.folder.glob("*.h5"):
        if path != copied:
            path.unlink()
    store.add(scenes[50:])
    store.add(scenes)
    with pytest.raises(UserError, match="show other scenes in this store; make it again"):
        SplitDataset(copied, "validation")
    assert split_file.make_split(store, RECIPE) == copied
    assert torch.equal(SplitDataset(copied, "validation").images(range(len(data))), data.images(range(len(data))))


def test_another_split_under_its_name_is_noticed_and_mended(tmp_path):
    """Of the same store and subsets: the recipe alone says that it is another one."""
    other = replace(RECIPE, hard_negatives=0.0)
    store = ImageStore(tmp_path, load_world("tiny"), 16)
    paths = [make_split(tmp_path, recipe) for recipe in (RECIPE, other)]
    before = paths[1].read_bytes()
    paths[1].write_bytes(paths[0].read_bytes())
    with pytest.raises(UserError, match="is another split than its name says"):
        SplitData(other, store.identity).open(paths[1])
    findings = [finding for finding in check_file(read_split(paths[1])) if not finding.holds]
    assert [finding.claim for finding in findings] == ["the recipe is the one that the file is named by"]
    assert paths[0].name in findings[0].detail
    assert split_file.make_split(store, other).read_bytes() == before
    assert SplitData(other, store.identity).open(paths[1]).train.split.recipe["hard_negatives"] == 0
    assert all(finding.holds for finding in check_file(read_split(paths[1])))


def test_a_file_that_another_process_holds_locked_is_read(copied):
    """It only reads them."""
    with copied.open() as split, (copied.parent / "shard-00000.h5").open() as shard:
        for file in (split, shard):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert len(SplitDataset(copied, "validation", preload=False)[0].image) == 3


def test_a_changed_caption_is_noticed(copied):
    with h5py.File(copied, "r+") as file:
        captions = file["subsets/train/caption"][:]
        captions[0] = "a red herring"
        file["subsets/train/caption"][:] = captions
    with pytest.raises(UserError, match="its checksum is wrong"):
        SplitDataset(copied)


def test_a_fresh_process_reads_a_compressed_store(tmp_path):
    path = make_split(tmp_path, codec="zstd")
    program = f"from menagerie import SplitDataset; print(len(SplitDataset({str(path)!r})[0].image))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.stdout == "3\n", result.stderr


def test_another_kind_of_hdf5_is_refused(copied):
    with pytest.raises(UserError, match="not a split file"):
        SplitDataset(copied.parent / "shard-00000.h5")

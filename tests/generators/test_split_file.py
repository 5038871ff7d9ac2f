"""Split files, the data set over them, and pictures and texts in them."""

import pickle
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from menagerie import SplitDataset
from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.captioned import collate
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.hdf5 import write_attribute
from menagerie.generators.storage.pack import pack
from menagerie.generators.storage.pictures import SplitPictures
from menagerie.generators.storage.split_file import read_split
from menagerie.studies.runs.data import SplitData
from tests.disks import mounted, with_largest_file
from tests.helpers.judge import outcome
from tests.helpers.splits import RECIPE, in_memory, make_split

FEW = {"test_scenes": 30, "test_views": 1}
EVERY = [
    RECIPE,
    KINDS["binding"](world="tiny", template="free-conjunction", mentioned=0.7, attributes=0.6, negated=0.4, **FEW),
    KINDS["spatial"](world="tiny-sizes", views=1, template="free-relation", attributes=0.5, **FEW),
    KINDS["dependence"](world="eight-textures", views=4, information=0.4, **FEW),
    KINDS["counting"](world="tiny-sizes", views=1, **FEW),
    KINDS["multi-object"](world="eight-textures", train_scenes=300, relations_stated=2, attributes=0.7, **FEW),
    KINDS["probe"](world="tiny", template="free-conjunction"),
]


@pytest.mark.parametrize("recipe", EVERY, ids=lambda recipe: recipe.kind)
def test_texts_that_a_file_gives_are_those_of_the_recipe(recipe):
    for name, scenes in recipe.subsets().items():
        records = in_memory(recipe).subsets[name]
        assert records.scenes == scenes
        texts = [recipe.texts(name, scene) for scene in scenes]
        assert records.true == [true for true, _ in texts]
        both = list(zip(records.false, (false for _, false in texts), strict=True))
        assert all(kept == false or (name == "train" and kept is None) for kept, false in both)
        assert not any(false for _, false in both) or any(kept for kept, _ in both)


def test_texts_of_very_many_records_are_written_anew(monkeypatch):
    kept = in_memory(EVERY[1]).subsets["train"]
    monkeypatch.setattr("menagerie.generators.storage.records.KEPT", 10)
    monkeypatch.setattr("menagerie.generators.storage.records.SOME", 32)
    rows = [5, 3, 11]
    assert kept.true_of(rows) == kept.captions_at(rows) == [kept.true[i] for i in rows]
    texts = [text.text for text in kept.true]
    some = set(kept.texts())
    assert max(map(len, texts)) == max(map(len, some & set(texts)))
    assert len(some & set(texts)) < len(set(texts))


def test_a_split_file_opens_in_three_lines(split):
    data = SplitDataset(split, "train")
    example = data[len(data) - 1]
    assert example.image.shape == (3, 16, 16)
    assert example.image.dtype == torch.uint8
    assert example.caption != example.negative
    assert example.graph.nodes != example.negative_graph.nodes
    assert not data.has_counterfactuals


def test_pixels_and_masks_show_the_scene(split):
    """The object on the left is to the left in the mask."""
    data = SplitDataset(split, "unseen_pairs")
    for mask in data.masks(range(len(data))).numpy():
        assert set(np.unique(mask)) == {0, 1, 2}
        left, right = (np.nonzero(mask == i)[1].mean() for i in (1, 2))
        assert left < right
    assert not torch.equal(data.counterfactual_images([0]), data.images([0]))


def test_images_are_the_same_however_they_are_had(copied):
    composed, kept = (SplitDataset(copied, "validation", preload=preload) for preload in (False, True))
    rows = range(len(composed))
    images, counterfactuals, masks = composed.images(rows), composed.counterfactual_images(rows), composed.masks(rows)
    assert torch.equal(kept.images(rows), images)
    pack(copied)
    held = SplitDataset(copied, "validation")
    assert torch.equal(held.images(rows), images)
    assert torch.equal(held.counterfactual_images(rows), counterfactuals)
    assert torch.equal(held.masks(rows), masks)
    sent = pickle.dumps(kept)
    assert len(sent) < 20_000
    assert torch.equal(pickle.loads(sent).images(rows), images)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_gives_all_records_with_and_without_workers(split, workers):
    data = SplitDataset(split, "train", preload=False)
    batches = list(DataLoader(data, batch_size=16, num_workers=workers))
    named = list(DataLoader(data, batch_size=16, collate_fn=collate))
    assert [batch[1:] for batch in batches] == [batch[1:] for batch in named]
    assert [graph for batch in batches for graph in batch.graph] == data.records.graphs
    assert [graph for batch in batches for graph in batch.negative_graph] == data.records.negative_graphs
    assert torch.equal(torch.cat([batch.image for batch in batches]), data.images(range(len(data))))
    assert [c for batch in batches for c in batch.caption] == data.records.captions


def test_graphs_in_batches_of_ones_own_stay_whole(split):
    """Torch would transpose their tuples, or fail where two graphs differ in size."""
    data = SplitDataset(split, "train", preload=False)
    graphs = [{"graph": data[i].graph} for i in range(len(data))]
    (batch,) = DataLoader(graphs, batch_size=len(data))
    assert batch["graph"] == data.records.graphs
    assert len({len(graph.nodes) for graph in batch["graph"]}) > 1


def test_same_recipe_same_bytes_light_and_packed(split, copied, tmp_path):
    other = make_split(tmp_path / "other")
    assert other.read_bytes() == split.read_bytes()
    for path in (copied, other):
        pack(path)
    assert other.read_bytes() == copied.read_bytes() != split.read_bytes()
    assert read_split(other).content == read_split(split).content


def test_a_pickled_split_is_its_path(split):
    opened = read_split(split)
    assert len(pickle.dumps(opened)) < 1000
    assert pickle.loads(pickle.dumps(opened)).content == opened.content


def test_an_unknown_subset_is_refused_with_the_nearest(split):
    with pytest.raises(UserError, match="did you mean 'unseen_pairs'"):
        SplitDataset(split, "unseen_pair")


@pytest.mark.parametrize("keep", [0, 100, 5000])
def test_truncated_split_is_named(copied, keep):
    copied.write_bytes(copied.read_bytes()[:keep])
    with pytest.raises(UserError, match=rf"{copied.name} is damaged.*make it again"):
        SplitDataset(copied)


@pytest.mark.parametrize("column", ["view", "animal", "mentioned", "counterfactual"])
def test_a_changed_number_is_noticed(copied, column):
    with h5py.File(copied, "r+") as file:
        values = file["train"][column][:]
        values[0] ^= 1
        file["train"][column][:] = values
    with pytest.raises(UserError, match="its digest is wrong"):
        SplitDataset(copied)


@pytest.mark.parametrize(
    "link", [h5py.ExternalLink("../secret.h5", "/"), h5py.SoftLink("/train")], ids=["external", "soft"]
)
@pytest.mark.parametrize("place", ["extra", "train/extra"])
def test_links_of_a_stranger_are_not_followed(copied, link, place):
    with h5py.File(copied.parent.parent / "secret.h5", "w") as file:
        file["view"] = np.arange(3)
    with h5py.File(copied, "r+") as file:
        file[place] = link
    with pytest.raises(UserError, match=r"is no table"):
        SplitDataset(copied)


def test_a_table_in_another_file_is_not_read(copied):
    with h5py.File(copied, "r+") as file:
        file["train"].create_dataset("extra", (4,), "u1", external=[("/etc/hostname", 0, 4)])
    with pytest.raises(UserError, match="is no table of this file"):
        SplitDataset(copied)


def test_another_split_under_its_name_is_noticed_and_mended(tmp_path):
    other = replace(RECIPE, hard_negatives=0.0)
    folder = SplitFolder(tmp_path, load_world("tiny"), 16)
    paths = [make_split(tmp_path, recipe) for recipe in (RECIPE, other)]
    before = paths[1].read_bytes()
    paths[1].write_bytes(paths[0].read_bytes())
    with pytest.raises(UserError, match="is another split than its name says"):
        SplitData(other, folder.identity).open(paths[1])
    assert folder.make(other).read_bytes() == before


def test_a_changed_world_is_refused(copied):
    with h5py.File(copied, "r+") as file:
        write_attribute(file, "identity", "0123456789ab")
    split = read_split(copied, verify=False)
    with pytest.raises(UserError, match=r"world tiny has changed since .* make it again"):
        SplitPictures(split).images("train", [0])


def test_a_full_disk_while_packing_is_one_line_and_leaves_the_file(copied, tmp_path):
    """HDF5 itself crashes where it can't write."""
    before = copied.read_bytes()
    what, said = with_largest_file(1_100_000, lambda: pack(copied), tmp_path)
    assert (what, f"{copied.name} can't be written (File too large" in said) == ("error", True), said
    out = tmp_path / "small"
    out.mkdir()
    with mounted(out, "-t", "tmpfs", "-o", "size=1100k", "tmpfs"):
        path = out / "split.h5"
        path.write_bytes(before)
        what, said = outcome(lambda _: pack(path), tmp_path)
        assert (what, "split.h5 can't be written (No space left on device" in said) == ("error", True), said
        assert path.read_bytes() == before
    assert copied.read_bytes() == before
    assert len(said.splitlines()) == 1


def test_damaged_pictures_are_refused_and_packed_anew(copied):
    pack(copied)
    before = copied.read_bytes()
    with h5py.File(copied, "r+") as file:
        file["validation/images"][3, 4, 5, 0] ^= 8
    with pytest.raises(UserError, match=r"images of 'validation' .* have changed since they were written"):
        SplitDataset(copied, "validation")
    pack(copied)
    assert copied.read_bytes() == before

"""Packed splits: one file, wherever it lies, with the content of the original."""

import shutil
import sys
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

from menagerie import SplitDataset
from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.run import audit
from menagerie.generators.storage import pack as pack_module
from menagerie.generators.storage.image_store import ImageStore
from menagerie.generators.storage.pack import pack
from menagerie.generators.storage.pixels import PixelReader, open_split
from tests.command import run_here
from tests.disks import mounted, with_largest_file
from tests.helpers.judge import outcome
from tests.helpers.splits import RECIPE, make_split


@pytest.fixture(scope="session")
def alone(split, tmp_path_factory):
    """The packed split in a folder of its own; nobody may change it."""
    out = tmp_path_factory.mktemp("made") / "packed.h5"
    pack(split, out)
    return shutil.move(out, tmp_path_factory.mktemp("moved") / "received.h5")


@pytest.fixture
def packed(alone, tmp_path):
    """The same, to be damaged."""
    return shutil.copy(alone, tmp_path / "packed.h5")


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_no_room_is_one_line_and_leaves_nothing(codec, split, tmp_path):
    """HDF5 itself crashes where it can't write."""
    out = tmp_path / "out"
    out.mkdir()
    what, said = with_largest_file(1_100_000, lambda: pack(split, out / "packed.h5", codec), tmp_path)
    assert (what, "packed.h5 can't be written (File too large" in said) == ("error", True), said
    with mounted(out, "-t", "tmpfs", "-o", "size=1100k", "tmpfs"):
        what, said = outcome(lambda path: pack(split, out / "packed.h5", codec), tmp_path)
        assert (what, "packed.h5 can't be written (No space left on device" in said) == ("error", True), said
        assert not list(out.iterdir())
    assert len(said.splitlines()) == 1
    assert not list(out.iterdir())


def assert_same_content(path, other):
    """Record by record: texts, graphs, scenes, pixels, masks and partners."""
    a, b = open_split(path), open_split(other)
    assert (a.recipe, a.identity, a.vocabulary, list(a.subsets)) == (
        b.recipe,
        b.identity,
        b.vocabulary,
        list(b.subsets),
    )
    for name in a.subsets:
        one, two = SplitDataset(a, name), SplitDataset(b, name)
        for field in ("scenes", "captions", "negatives", "graphs", "negative_graphs"):
            assert getattr(one.records, field) == getattr(two.records, field)
        everything = range(len(one))
        assert torch.equal(one.images(everything), two.images(everything))
        assert torch.equal(one.masks(everything), two.masks(everything))
        paired = np.nonzero(one.records.partners >= 0)[0]
        assert (np.nonzero(two.records.partners >= 0)[0] == paired).all()
        if len(paired):
            assert torch.equal(one.partner_images(paired), two.partner_images(paired))


def test_content_is_the_original(split, alone):
    assert_same_content(split, alone)


def test_audit_holds(alone):
    assert [finding.claim for finding in audit(alone) if not finding.holds] == []


def test_plain_h5py_reads_it_as_the_original(split, alone):
    with h5py.File(split) as a, h5py.File(alone) as b:
        rows = [file["subsets/validation/scene"][0] for file in (a, b)]
        for name in ("images", "masks", "scenes"):
            assert np.array_equal(a[f"shards/0/{name}"][rows[0]], b[f"shards/0/{name}"][rows[1]])


def test_only_needed_rows_of_a_large_store_in_many_shards(tmp_path, monkeypatch):
    monkeypatch.setattr("menagerie.generators.storage.image_store.SHARD_ROWS", 37)
    store = ImageStore(tmp_path, load_world("tiny"), 16)
    store.add(replace(RECIPE, pairs=1.0, seed=5).scenes_to_render()[::2])
    path = make_split(tmp_path)
    pack(path, tmp_path / "packed.h5")
    assert_same_content(path, tmp_path / "packed.h5")
    assert len(open_split(path).shards) > 2
    (shard,) = open_split(tmp_path / "packed.h5").shards
    assert shard.rows == len(RECIPE.scenes_to_render()) < sum(s.rows for s in open_split(path).shards)


def test_packing_a_packed_file_gives_the_same_bytes(split, alone, tmp_path):
    for source in (split, alone):
        pack(source, tmp_path / f"{source.stem}.h5")
        assert (tmp_path / f"{source.stem}.h5").read_bytes() == alone.read_bytes()


def test_compressed(alone, tmp_path):
    pack(alone, tmp_path / "small.h5", codec="zstd")
    assert (tmp_path / "small.h5").stat().st_size < alone.stat().st_size
    assert_same_content(tmp_path / "small.h5", alone)
    pack(tmp_path / "small.h5", tmp_path / "plain.h5")
    assert (tmp_path / "plain.h5").read_bytes() == alone.read_bytes()


def test_progress_counts_every_image(alone, tmp_path):
    reports = []
    pack(alone, tmp_path / "packed.h5", progress=lambda *report: reports.append(report))
    rows = open_split(alone).shards[0].rows
    assert reports == [(stage, i + 1, rows) for stage in ("pack", "check") for i in range(rows)]


def test_outputs_and_folders_are_respected(alone, tmp_path):
    (tmp_path / "mine.h5").write_text("keep me")
    for out, message in (("mine.h5", "there already; choose another --out"), ("none/packed.h5", "there is no folder")):
        with pytest.raises(UserError, match=message):
            pack(alone, tmp_path / out)
    with pytest.raises(UserError, match="unknown codec 'zip'"):
        pack(alone, tmp_path / "packed.h5", codec="zip")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.h5"]
    assert (tmp_path / "mine.h5").read_text() == "keep me"


def test_stopped_it_leaves_nothing(alone, tmp_path):
    def stop(stage, done, total):
        if done == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack(alone, tmp_path / "packed.h5", progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_pixels_that_came_back_wrong_are_noticed(alone, tmp_path, monkeypatch):
    write = pack_module.write_pixels

    def wrong(group, *rest):
        write(group, *rest)
        group["masks"][5] = 7

    monkeypatch.setattr(pack_module, "write_pixels", wrong)
    with pytest.raises(UserError, match="row 5 came back from the disk"):
        pack(alone, tmp_path / "packed.h5")
    assert list(tmp_path.iterdir()) == []


def test_flipped_byte_is_noticed(packed):
    with h5py.File(packed) as file:
        offset = file["shards/0/images"].id.get_chunk_info(3).byte_offset
    content = bytearray(packed.read_bytes())
    content[offset + 7] ^= 0xFF
    packed.write_bytes(content)
    with pytest.raises(UserError, match=r"packed\.h5 is damaged at row 3 .*pack it again, or request a new copy"):
        PixelReader(open_split(packed)).read(3)


@pytest.mark.parametrize("name", ["images", "masks", "scenes"])
def test_a_missing_table_is_named(packed, name):
    with h5py.File(packed, "r+") as file:
        del file[f"shards/0/{name}"]
    with pytest.raises(UserError, match=rf"packed\.h5 is damaged .*{name}.*pack it again"):
        open_split(packed)


def test_a_short_table_is_noticed(packed):
    with h5py.File(packed, "r+") as file:
        images = file["shards/0/images"][:-1]
        del file["shards/0/images"]
        file["shards/0/images"] = images
    with pytest.raises(UserError, match="its tables differ in length"):
        open_split(packed)


def shard_elsewhere(file):
    del file["shards/0"]
    file["shards/0"] = h5py.ExternalLink("secret.h5", "/")


def images_elsewhere(file):
    del file["shards/0/images"]
    file["shards/0/images"] = h5py.ExternalLink("secret.h5", "/images")


def virtual_images(file):
    shape = file["shards/0/images"].shape
    layout = h5py.VirtualLayout(shape, "u1")
    layout[:] = h5py.VirtualSource("secret.h5", "images", shape)
    del file["shards/0/images"]
    file["shards/0"].create_virtual_dataset("images", layout)


def raw_bytes_of_another_file(file):
    size = file["shards/0/images"].size
    del file["shards/0/images"]
    file["shards/0"].create_dataset("images", (size,), "u1", external=[("secret.h5", 0, size)])


def second_shard_beside_it(file):
    table = file["shard_table"][:]
    del file["shard_table"]
    file["shard_table"] = np.concatenate([table, table])
    table = file["shard_table"][:]
    table["file"][1] = b"secret.h5"
    file["shard_table"][:] = table


@pytest.mark.parametrize(
    "attack",
    [shard_elsewhere, images_elsewhere, virtual_images, raw_bytes_of_another_file, second_shard_beside_it],
    ids=lambda attack: attack.__name__,
)
def test_opens_no_other_file(packed, attack):
    with h5py.File(packed.with_name("secret.h5"), "w") as file, h5py.File(packed) as shard:
        shard.copy("shards/0/images", file)
    with h5py.File(packed, "r+") as file:
        attack(file)
    with pytest.raises(UserError, match=r"refers to .* outside itself, though it is packed; do not trust"):
        open_split(packed)


def test_command_line(split, tmp_path):
    call = [sys.executable, "-m", "menagerie", "pack", str(split), "--out", str(tmp_path / "packed.h5")]
    first = run_here(call, tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stdout == f"{tmp_path / 'packed.h5'}\n"
    assert_same_content(split, tmp_path / "packed.h5")
    again = run_here(call, tmp_path)
    assert again.returncode == 2
    assert again.stderr.startswith("error: ")
    assert again.stderr.count("\n") == 1

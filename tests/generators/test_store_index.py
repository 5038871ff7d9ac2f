"""The index of a store: found by scene, appended to, moved from form to form, and whole after every interruption."""

import os
import shutil

import h5py
import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.locks import FileLock
from menagerie.envs.worlds import load_world
from menagerie.generators.storage import scene_keys, store_index
from menagerie.generators.storage.image_store import ImageStore
from menagerie.generators.storage.journal import HEADER
from menagerie.generators.storage.shards import Shard, check_identity, read_shard_table, shard_table
from menagerie.generators.storage.store_index import INDEX, JOURNAL, KEYS, StoreIndex, index_to_extend, write_tables
from menagerie.generators.storage.tables import (
    DIGEST,
    digest_of_table,
    open_hdf5,
    read_attribute,
    read_table,
)
from menagerie.generators.vocabulary import SCENE_TYPE, Vocabulary
from tests.disks import with_largest_file
from tests.helpers.judge import outcome

WORLD = load_world("tiny")
VOCABULARY = Vocabulary.of(WORLD)
IDENTITY, ROWS, FEW = "4c5117e7efe9", 5, 20  # rows of a shard; rows of a store whose index is one file
SCENES = list(WORLD.singles())


def table_of(rows, start=0):
    """Records of different scenes."""
    table = np.full(rows, -1, SCENE_TYPE)
    table["view"] = np.arange(start, start + rows)
    table["background"], table["animal"][:, 0] = table["view"] % 3, 1
    return table


def extend(folder, shards):
    """List some shards and end the addition; returns the index."""
    folder.mkdir(exist_ok=True)
    index = index_to_extend(folder, IDENTITY, VOCABULARY)
    for _ in range(shards):
        index.append(f"shard-{len(index.shards):05d}.h5", table_of(ROWS, len(index)), "none")
    return index_to_extend(folder, IDENTITY, VOCABULARY)


def read_before(path, identity=IDENTITY):
    """What the versions before journals read."""
    with open_hdf5(path, "delete it") as file:
        shards, scenes = read_shard_table(file, "shards"), read_table(file, "scenes", SCENE_TYPE)
        if read_attribute(file, DIGEST) != digest_of_table(scenes, shard_table(shards)):
            raise ValueError("it was changed since it was written")
        check_identity(path, read_attribute(file, "identity"), identity)
        return shards, scenes


def listed(folder):
    index = StoreIndex(folder, IDENTITY)
    return index.shards, index.table().tobytes()


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    monkeypatch.setattr(store_index, "LARGE", FEW)
    monkeypatch.setattr(store_index, "PART", 7)


@pytest.mark.parametrize("shards", [1, 4, 5, 9])
def test_each_scene_is_found_in_its_row(tmp_path, shards):
    for _ in range(shards):
        index = extend(tmp_path, 1)
    rows = shards * ROWS
    assert len(index) == rows
    assert index.table().tobytes() == table_of(rows).tobytes()
    mixed = np.random.default_rng(0).permutation(rows)
    assert index.find(table_of(rows)[mixed]).tolist() == mixed.tolist()
    assert index.find(table_of(3, start=rows)).tolist() == [-1] * 3
    assert index.find(table_of(0)).tolist() == []
    assert index.records(mixed).tobytes() == table_of(rows)[mixed].tobytes()


def test_scenes_with_equal_keys_are_told_apart(tmp_path, monkeypatch):
    real = scene_keys.keys_of
    monkeypatch.setattr(scene_keys, "keys_of", lambda records: real(records) % 3)
    index = extend(tmp_path, 9)
    assert index.find(table_of(50)).tolist() == [*range(45), *[-1] * 5]


@pytest.mark.parametrize("shards", [2, 5])
def test_of_a_scene_in_two_rows_the_last_counts(tmp_path, shards):
    index = index_to_extend(tmp_path, IDENTITY, VOCABULARY)
    for _ in range(shards):
        index.append("a.h5", table_of(ROWS), "none")
    found = index_to_extend(tmp_path, IDENTITY, VOCABULARY).find(table_of(ROWS))
    assert found.tolist() == list(range((shards - 1) * ROWS, shards * ROWS))


def test_a_small_store_has_the_index_that_it_always_had(tmp_path):
    extend(tmp_path, 2)
    extend(tmp_path, 2)
    assert [path.name for path in tmp_path.iterdir()] == [INDEX]
    shards, scenes = read_before(tmp_path / INDEX)
    assert shards == [Shard(f"shard-{k:05d}.h5", k * ROWS, ROWS, "none") for k in range(4)]
    assert scenes.tobytes() == table_of(FEW).tobytes()
    write_tables(tmp_path / "other.h5", IDENTITY, VOCABULARY, shards, scenes)
    assert (tmp_path / "other.h5").read_bytes() == (tmp_path / INDEX).read_bytes()


def test_a_store_of_the_version_before_grows_without_a_word_lost(tmp_path):
    """Its index moves into the journal when it gets large."""
    shards = [Shard(f"shard-{k:05d}.h5", k * ROWS, ROWS, "lz4") for k in range(6)]
    write_tables(tmp_path / INDEX, IDENTITY, VOCABULARY, shards, table_of(30))
    assert listed(tmp_path) == (shards, table_of(30).tobytes())
    index = extend(tmp_path, 1)
    assert index.shards == [*shards, Shard("shard-00006.h5", 30, ROWS, "none")]
    assert listed(tmp_path) == (index.shards, table_of(35).tobytes())
    assert sorted(path.name for path in tmp_path.iterdir()) == [INDEX, JOURNAL, KEYS]
    with pytest.raises(UserError, match=r"index\.h5 belongs to store of a later version, in index\.journal, not to"):
        read_before(tmp_path / INDEX)


def test_an_append_to_a_large_store_writes_its_own_bytes_only(tmp_path):
    extend(tmp_path, 40)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    extend(tmp_path, 1)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    new = after[JOURNAL][len(before[JOURNAL]) :]
    assert after[JOURNAL].startswith(before[JOURNAL])
    assert ROWS * SCENE_TYPE.itemsize < len(new) < ROWS * SCENE_TYPE.itemsize + 100
    assert after == before | {JOURNAL: after[JOURNAL]}


def test_the_keys_of_a_large_store_are_kept_and_grow(tmp_path):
    extend(tmp_path, 40)
    first = (tmp_path / KEYS).read_bytes()
    for more in range(1, 8):
        index = extend(tmp_path, 1)
        assert index.find(table_of(len(index))).tolist() == list(range((40 + more) * ROWS))
    assert (tmp_path / KEYS).read_bytes() != first


@pytest.mark.parametrize("spoil", ["cut", "flipped", "another store's", "gone"])
def test_spoilt_keys_are_made_anew(tmp_path, spoil):
    index, path = extend(tmp_path, 9), tmp_path / KEYS
    whole = path.read_bytes()
    if spoil == "gone":
        path.unlink()
    elif spoil == "another store's":
        scene_keys.SceneKeys.of([table_of(45)[::-1]]).save(path, b"other")
    else:
        path.write_bytes(whole[:-1] if spoil == "cut" else whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
    assert StoreIndex(tmp_path, IDENTITY).find(table_of(45)).tolist() == list(range(45))
    extend(tmp_path, 0)
    assert path.read_bytes() == whole
    assert len(index) == 45


@pytest.mark.parametrize("shards", [3, 9])
def test_an_append_cut_at_any_byte_leaves_the_index_whole(tmp_path, shards):
    """And it goes on from there."""
    extend(tmp_path / "a", shards)
    whole = shutil.copytree(tmp_path / "a", tmp_path / "whole")
    index = index_to_extend(whole, IDENTITY, VOCABULARY)
    before = index.journal.size
    index.append(f"shard-{shards:05d}.h5", table_of(ROWS, len(index)), "none")
    content, expected = (whole / JOURNAL).read_bytes(), listed(tmp_path / "a")
    for end in range(before, len(content)):
        (tmp_path / "a" / JOURNAL).write_bytes(content[:end])
        assert listed(tmp_path / "a") == expected, end
    for end in (before, before + HEADER, len(content) - 1):  # a disk may have given room before it had the bytes
        (tmp_path / "a" / JOURNAL).write_bytes(content[:end] + bytes(len(content) - end))
        assert listed(tmp_path / "a") == expected, end
    extend(tmp_path / "a", 1)
    assert listed(tmp_path / "a") == listed(whole)


def test_a_change_anywhere_else_in_the_journal_is_damage(tmp_path):
    extend(tmp_path, 6)
    content, path = (tmp_path / JOURNAL).read_bytes(), tmp_path / JOURNAL
    expected, last = listed(tmp_path), len(content) * 5 // 6
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        if place < last + HEADER:
            with pytest.raises(UserError, match=r"index\.journal is damaged .*; delete it and run again"):
                listed(tmp_path)
        else:  # as if its append had been interrupted
            assert listed(tmp_path)[0] == expected[0][:-1]
    path.write_bytes(content)
    with pytest.raises(UserError, match="or another store's"):
        StoreIndex(tmp_path, "another")
    path.unlink()
    with pytest.raises(UserError, match=r"index\.journal is missing.*bring it back, or delete index\.h5 too"):
        listed(tmp_path)


def test_a_writer_that_dies_between_two_files_loses_nothing(tmp_path, monkeypatch):
    """Every file is written whole; whatever the last one was, the index is the same."""

    class Killed(BaseException):
        pass

    for shards, more in ((2, 1), (3, 2), (30, 5)):
        for steps in range(4):
            folder = tmp_path / f"{shards}-{steps}"
            extend(folder, shards)
            index = index_to_extend(folder, IDENTITY, VOCABULARY)
            for _ in range(more):
                index.append(f"shard-{len(index.shards):05d}.h5", table_of(ROWS, len(index)), "none")
            expected, left = listed(folder), [steps]

            def count(real, left=left):
                def write(*args, **options):
                    if not left[0]:
                        raise Killed
                    left[0] -= 1
                    return real(*args, **options)

                return write

            with monkeypatch.context() as patch:
                for name in ("write_tables", "write_journal"):
                    patch.setattr(store_index, name, count(getattr(store_index, name)))
                patch.setattr(scene_keys.SceneKeys, "save", count(scene_keys.SceneKeys.save))
                patch.setattr(type(folder), "unlink", count(type(folder).unlink))
                try:
                    index_to_extend(folder, IDENTITY, VOCABULARY)
                except Killed:
                    assert listed(folder) == expected
            extend(folder, 0)
            assert listed(folder) == expected
            assert StoreIndex(folder, IDENTITY).find(table_of(len(index))).tolist() == list(range(len(index)))


def test_several_processes_list_and_read_at_once(tmp_path):
    """Each lists shards of its own; whoever reads sees no fewer rows than before, and each scene in its row."""
    turns, writers = 8, 3
    (tmp_path / "store").mkdir()

    def work(path):
        seen = 0
        for _ in range(turns):
            with FileLock(path / "lock"):
                extend(path / "store", 1)
            index = StoreIndex(path / "store", IDENTITY)
            assert len(index) > seen
            seen = len(index)
            assert index.find(table_of(seen)).tolist() == list(range(seen))
        return seen

    children = []
    for _ in range(writers):
        child = os.fork()
        if not child:
            what, _ = outcome(work, tmp_path)
            os._exit(what != "value")
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * writers
    rows = writers * turns * ROWS
    assert listed(tmp_path / "store")[1] == table_of(rows).tobytes()


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path):
    extend(tmp_path, 9)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    size = len(before[JOURNAL]) + 100
    what, said = with_largest_file(size, lambda: extend(tmp_path, 1), tmp_path)
    assert (what, len(said.splitlines())) == ("error", 1), said
    assert "index.journal can't be written (File too large" in said
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_link_in_the_journals_place_is_not_followed(tmp_path):
    (tmp_path / "secret").write_bytes(b"")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / JOURNAL).symlink_to(tmp_path / "secret")
    with pytest.raises(UserError, match=r"index\.journal can't be written"):
        StoreIndex(tmp_path / "store", IDENTITY).append("a.h5", table_of(3), "none")
    assert (tmp_path / "secret").read_bytes() == b""


def test_a_large_store_renders_each_scene_once(tmp_path, monkeypatch):
    """Of real scenes, some by one call and some by the next, with a shard that was lost."""
    monkeypatch.setattr("menagerie.generators.storage.image_store.SHARD_ROWS", ROWS)
    store = ImageStore(tmp_path, WORLD, 16)
    store.add(SCENES[:22])
    store.add(SCENES[:28])
    assert (store.folder / KEYS).exists()
    (store.folder / "shard-00001.h5").unlink()
    store.add(SCENES[:28])
    shown = np.concatenate([h5py.File(store.folder / shard.file)["scenes"][:] for shard in store.index()[0]])
    assert shown.tobytes() == store.index()[1].tobytes()
    assert VOCABULARY.decode(shown[store.rows(SCENES[:28])]) == SCENES[:28]
    assert store.missing(SCENES[:30]) == sorted(SCENES[28:30])

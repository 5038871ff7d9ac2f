"""Stores of more shards than a process may have files open, and what is said where the system has nothing left."""

import errno
import fcntl
import os
import resource
from itertools import islice

import numpy as np
import pytest

from menagerie.envs.core.reading import Inaccessible, check_accessible
from menagerie.generators.audit.rows import ShownRows
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.open_shards import MOST_OPEN, OPEN, OpenShards
from menagerie.generators.storage.pixels import PixelReader, open_split
from menagerie.generators.storage.shards import ShardLocation
from menagerie.generators.storage.split_file import read_split
from tests.helpers.judge import outcome
from tests.helpers.splits import make_split

HANDLES = 24  # fewer than the shards that are kept open where handles are plenty


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """A split of more than a hundred shards of one scene each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("menagerie.generators.storage.image_store.SHARD_ROWS", 1)
        return make_split(tmp_path_factory.mktemp("store"))


def rows_of(split):
    return np.unique(np.concatenate([records.rows for records in split.subsets.values()]))


def free_handles(count):
    """Let this process open `count` more files: the limit is on the numbers of handles, of which the least are used."""
    used = {int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}
    free = (number for number in range(len(used) + count + 1) if number not in used)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(islice(free, count, None)),) * 2)


def test_a_process_that_may_open_few_files_reads_many_shards(split):
    known = open_split(split)
    rows = rows_of(known)
    assert len(known.shards) >= len(rows) > 2 * MOST_OPEN

    def few(path):
        free_handles(HANDLES)
        readers = [PixelReader(open_split(path)) for _ in range(2)]
        mixed = np.random.default_rng(0).permutation(rows)
        return [reader.read_all(mixed) for reader in readers] + [readers[0].digests(mixed), readers[0].hidden(mixed)]

    def plenty(path):
        reader, mixed = PixelReader(open_split(path)), np.random.default_rng(0).permutation(rows)
        one_by_one = np.stack([reader.read(row) for row in mixed.tolist()])
        return [one_by_one, one_by_one, reader.digests(mixed), reader.hidden(mixed)]

    assert outcome(few, split) == outcome(plenty, split)


def test_without_a_handle_the_limit_is_named_and_nothing_is_called_damaged(split):
    def none(path):
        known = read_split(path)
        free_handles(0)
        return PixelReader(known).read(0)

    what, said = outcome(none, split)
    assert what == "error"
    assert "Too many open files" in said
    assert "ulimit -n" in said
    assert str(split.parent / "shard-") in said
    assert "damaged" not in said
    assert "delete" not in said
    for opens in (open_split, SplitDataset, lambda path: ShownRows(read_split(path)).block(np.arange(5))):
        what, said = outcome(lambda path, opens=opens: (read_split(path), free_handles(0), opens(path)), split)
        assert (what, "ulimit -n" in said, "damaged" in said) == ("error", True, False)


def test_a_locked_shard_is_read(split):
    known = read_split(split)
    locked = os.open(known.location(0).file, os.O_RDWR)
    try:
        fcntl.flock(locked, fcntl.LOCK_EX)
        assert PixelReader(known).read(0).any()
    finally:
        os.close(locked)


def test_some_tens_stay_open_and_a_reader_that_is_gone_has_none(split):
    known = read_split(split)
    reader = PixelReader(known)
    reader.read_all(rows_of(known))
    assert len(OPEN) == MOST_OPEN
    before = len(os.listdir("/proc/self/fd"))
    del reader
    assert len(os.listdir("/proc/self/fd")) < before


def test_what_is_read_stays_open_when_others_open(split):
    known, few = read_split(split), OpenShards(most=2)
    locations = [known.location(i) for i in range(4)]
    tables = [few.table(0, i, location, "images") for i, location in enumerate(locations)]
    assert len(few) == 2
    assert all(table[0].any() for table in tables)
    assert few.table(0, 3, locations[3], "images") is tables[3]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EMFILE, "x"), "ulimit -n"),
        (KeyError("unable to open file: name = 'a', errno = 24, error message = 'Too many open files'"), "ulimit -n"),
        (OSError(errno.ENFILE, "x"), "fs.file-max"),
        (MemoryError(), "ulimit -v"),
        (RuntimeError("file read failed (errno = 12, error message = 'Cannot allocate memory')"), "ulimit -v"),
        (BlockingIOError(errno.EAGAIN, "x"), "lock"),
    ],
)
def test_what_the_system_lacks_is_said_with_the_way_out(tmp_path, error, said):
    with pytest.raises(Inaccessible, match=said):
        check_accessible(tmp_path / "a.h5", error)


def test_faults_of_a_file_are_left_to_the_caller(tmp_path):
    for error in (OSError("truncated file"), KeyError("images"), FileNotFoundError(errno.ENOENT, "x")):
        check_accessible(tmp_path / "a.h5", error)


def test_a_shard_that_is_no_file_is_no_shard(tmp_path):
    with pytest.raises(ValueError, match="a folder"):
        OpenShards().table(0, 0, ShardLocation(tmp_path), "images")

"""Files that are written whole or not at all, also where somebody planted a link, the disk is full or has no locks."""

import errno
import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from menagerie.envs.core.files import NUMBA_CACHE, Unwritable, set_numba_cache, write_csv, write_text
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.machine import system_name
from tests.disks import with_largest_file


def test_link_at_the_temporary_name_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".a.{system_name()}-{os.getpid()}.tmp.txt").symlink_to(victim)
    write_text(tmp_path / "a.txt", "ours")
    assert victim.read_text() == "precious"
    assert (tmp_path / "a.txt").read_text() == "ours"
    assert not (tmp_path / "a.txt").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "victim"]


def test_failed_write_names_the_file_and_keeps_the_old_one(tmp_path):
    """The system's own error of a write has no path."""
    path = tmp_path / "a.csv"
    path.write_text("old")
    what, said = with_largest_file(4096, lambda: write_csv(path, ["a"], ([k] for k in range(10_000))), tmp_path)
    assert (what, "a.csv can't be written (File too large)" in said) == ("error", True), said
    assert [its.name for its in tmp_path.iterdir()] == ["a.csv"]
    assert path.read_text() == "old"


def test_missing_locks_are_one_error(tmp_path, monkeypatch):
    def flock(file, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(Unwritable, match=r"\.lock can't be locked \(No locks available\)") as error:
        FileLock(tmp_path / ".lock").acquire()
    assert error.value.errno == errno.ENOLCK


def test_numba_gets_a_cache_folder_where_no_default_can_be_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    nowhere = tmp_path / "file" / "below"
    monkeypatch.setenv(NUMBA_CACHE, "")  # so that it is put back
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    set_numba_cache(nowhere)
    assert not os.environ[NUMBA_CACHE]
    monkeypatch.setenv("XDG_CACHE_HOME", str(nowhere))
    set_numba_cache(tmp_path)
    assert not os.environ[NUMBA_CACHE]
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(nowhere))
        set_numba_cache(nowhere)
    assert not os.environ[NUMBA_CACHE], "no place at all: that is no mistake yet"
    set_numba_cache(nowhere)
    assert Path(os.environ[NUMBA_CACHE]).stat().st_mode & 0o077 == 0  # its files are code
    assert NUMBA_CACHE in capsys.readouterr().err

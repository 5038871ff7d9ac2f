"""The audit holds on what we make and fails on every planted fault."""

import re
import shutil
import sys
from pathlib import Path

import h5py

from tests.command import run_here
from tests.helpers.splits import overwrite


def leaked_pair(file):
    for name in ("animal", "texture", "slot"):
        overwrite(file, f"train/{name}", -1, file[f"unseen_pairs/{name}"][0])


def run(*arguments):
    return run_here([sys.executable, "-m", "menagerie", *map(str, arguments)], Path.cwd())


def test_the_command_exits_with_1_if_a_check_fails_and_2_without_a_file(copied):
    sound = run("audit", copied)
    assert sound.returncode == 0, sound.stderr
    assert "0 fail" in sound.stdout
    with h5py.File(copied, "r+") as file:
        leaked_pair(file)
    assert run("audit", copied).returncode == 1
    missing = run("audit", copied.parent / "none.h5")
    assert missing.returncode == 2
    assert missing.stderr.startswith("error: there is no file")
    assert len(missing.stderr.splitlines()) == 1


def test_one_bad_file_keeps_no_other_from_being_audited(copied, tmp_path):
    """Each has its findings; one that can't be read or fails stops none of the others."""
    missing, broken = tmp_path / "none.h5", copied.with_name("broken.h5")
    shutil.copy(copied, broken)
    with h5py.File(broken, "r+") as file:
        leaked_pair(file)
    done = run("audit", missing, broken, copied)
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no file")
    assert len(done.stderr.splitlines()) == 1
    first, second = re.findall(r"checks hold, (\d+) fail", done.stdout)
    assert int(first) > 0 == int(second)
